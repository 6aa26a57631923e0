// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace acc {

/// How many characters the UTF-8 text has.
std::size_t count_characters(std::string_view text);

/// The first `most` characters of a UTF-8 text; the last of them is an ellipsis where something is missing.
std::string cut_characters(std::string_view text, std::size_t most);

/// The text in lines of at most `width` columns, broken at its blanks; lines after the first begin with
/// `indent` blanks, and the first is taken to begin there as well. A word that is longer than a line has one
/// of its own.
std::string wrap(std::string_view text, std::size_t indent, std::size_t width);

/// An entry of a help, a line or more: the name, and what it is beside it, or below where `width` is narrow
/// or the name is long.
std::string help_entry(std::string_view name, std::string_view description, std::size_t width);

}  // namespace acc
