// SPDX-License-Identifier: Apache-2.0
#include "acc/report/html_page.hpp"

#include <fmt/format.h>

namespace acc::launcher {
namespace {

constexpr const char* kStyle =
#include "report_style.inc"
    ;

}  // namespace

std::string html_page(const std::string& title, const std::string& content) {
  return fmt::format(R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{}</title>
<style>
{}</style>
</head>
<body>
{}</body>
</html>
)",
                     title, kStyle, content);
}

std::string section_of(const std::string& title, const std::string& content, const char* attributes) {
  return fmt::format("<section{}>\n<h2>{}</h2>\n{}</section>\n", attributes, title, content);
}

std::string figure_card(const char* name, const std::string& value, const std::string& note) {
  return fmt::format("<div><dt>{}</dt><dd>{} <small>{}</small></dd></div>\n", name, value, note);
}

std::string number_cell(const std::string& text, bool is_bad) {
  return fmt::format("<td class=\"number{}\">{}</td>", is_bad ? " bad" : "", text);
}

std::string legend_entry(const std::string& style, const std::string& name) {
  return fmt::format(R"(<li><span class="key {}"></span>{}</li>)", style, name);
}

}  // namespace acc::launcher
