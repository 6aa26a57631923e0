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

struct Reference {
  std::string_view name = {};
  std::size_t length = 0;
};

// The `$name` or `${name}` at the beginning of `text`; none has no name.
Reference first_reference(std::string_view text) {
  if (!text.starts_with('$')) return {};
  const bool braces = text.substr(1).starts_with('{');
  const std::string_view name = name_at(text.substr(braces ? 2 : 1));
  if (!braces) return {name, name.size() + 1};
  return text.substr(name.size() + 2).starts_with('}') ? Reference{name, name.size() + 3} : Reference{};
}

}  // namespace

std::string substitute(std::string_view text, const TemplateValues& values, Escape escape) {
  std::string result;
  for (auto dollar = text.find('$'); dollar != std::string_view::npos; dollar = text.find('$')) {
    result += text.substr(0, dollar);
    text.remove_prefix(dollar);
    const Reference reference = first_reference(text);
    if (const auto value = values.find(reference.name); value != values.end()) {
      result += value->second;
      text.remove_prefix(reference.length);
      continue;
    }
    const std::string_view next = text.substr(1);
    const bool escaped =
        escape == Escape::every_dollar ? next.starts_with('$') : values.contains(first_reference(next).name);
    result += '$';
    text.remove_prefix(escaped ? 2 : 1);
  }
  return result += text;
}

std::vector<std::string> unknown_names(std::string_view line_template) {
  constexpr std::array<std::string_view, 7> kNames = {"role_name", "rank",     "local_rank", "group_rank",
                                                      "host",      "hostname", "attempt"};
  std::vector<std::string> unknown;
  for (std::size_t at = line_template.find("${"); at != std::string_view::npos;
       at = line_template.find("${", at + 2)) {
    if (at > 0 && line_template[at - 1] == '$') continue;
    const std::string_view name = first_reference(line_template.substr(at)).name;
    if (!name.empty() && std::ranges::find(kNames, name) == kNames.end()) unknown.emplace_back(name);
  }
  return unknown;
}

}  // namespace acc::launcher
