// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/line_template.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace acc::launcher {
namespace {

bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool continues_name(char c) {
  return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

std::string_view name_at(std::string_view text) {
  if (text.empty() || !starts_name(text.front())) return {};
  const auto* const end = std::ranges::find_if_not(text, continues_name);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

}  // namespace

std::string substitute(std::string_view text, const TemplateValues& values) {
  std::string result;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    result += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    if (text.starts_with('$')) {
      result += '$';
      text.remove_prefix(1);
      continue;
    }
    const bool braces = text.starts_with('{');
    const std::string_view name = name_at(text.substr(braces ? 1 : 0));
    const std::size_t length = name.size() + (braces ? 2 : 0);
    const bool closed = !braces || text.substr(name.size() + 1).starts_with('}');
    const auto value = values.find(name);
    if (name.empty() || !closed || value == values.end()) {
      result += '$';
      continue;
    }
    result += value->second;
    text.remove_prefix(length);
  }
  return result;
}

std::vector<std::string> unknown_names(std::string_view line_template) {
  constexpr std::array<std::string_view, 7> kNames = {"role_name", "rank",     "local_rank", "group_rank",
                                                      "host",      "hostname", "attempt"};
  std::vector<std::string> unknown;
  for (std::size_t at = line_template.find("${"); at != std::string_view::npos;
       at = line_template.find("${", at + 2)) {
    if (at > 0 && line_template[at - 1] == '$') continue;
    const std::string_view name = name_at(line_template.substr(at + 2));
    if (name.empty() || !line_template.substr(at + 2 + name.size()).starts_with('}')) continue;
    if (std::ranges::find(kNames, name) == kNames.end()) unknown.emplace_back(name);
  }
  return unknown;
}

}  // namespace acc::launcher
