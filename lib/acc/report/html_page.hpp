// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace acc::launcher {

// The parts that all pages have. Content is HTML already.

/// A page that needs no other file, no network and no script, and permits none.
std::string html_page(const std::string& title, const std::string& content);

/// `attributes`: of the element, with a space in front.
std::string section_of(const std::string& title, const std::string& content, const char* attributes = "");

/// A figure that stands out: for a list `<dl class="figures">`.
std::string figure_card(const char* name, const std::string& value, const std::string& note);

/// A cell of a table; a bad number is marked.
std::string number_cell(const std::string& text, bool is_bad = false);

/// What a class of the style stands for: for a list `<ul class="legend">`.
std::string legend_entry(const std::string& style, const std::string& name);

}  // namespace acc::launcher
