// SPDX-License-Identifier: Apache-2.0
#include "acc/base/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace acc {
namespace {

// With its `=`: all variables of a name begin with it, and their order is that of whole strings.
std::string_view name_in(std::string_view variable) {
  return variable.substr(0, variable.find('=') + 1);
}

std::string joined(std::string_view name, std::string_view value) {
  std::string variable;
  variable.reserve(name.size() + 1 + value.size());
  return variable.append(name).append(1, '=').append(value);
}

// Where the variable of this name, which ends in `=`, is or belongs in sorted strings, and whether it is
// there.
template <class Strings>
auto find_in(Strings& strings, std::string_view name) {
  const auto position = std::ranges::lower_bound(strings, name);
  return std::pair(position, position != strings.end() && position->starts_with(name));
}

}  // namespace

Environment::Environment(const Variables& variables) {
  strings_.reserve(variables.size());
  for (const auto& [name, value] : variables) strings_.push_back(joined(name, value));
  std::ranges::sort(strings_);
}

Environment::Environment(std::initializer_list<std::pair<std::string_view, std::string_view>> variables) {
  strings_.reserve(variables.size());
  for (const auto& [name, value] : variables) set(name, value);
}

Environment Environment::of_process() {
  struct Variable {
    std::string_view name;
    std::string_view text;
  };
  std::vector<Variable> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const auto name = name_in(text); !name.empty()) variables.push_back({name, text});
  }
  // Of a variable that is there twice the first counts, as for getenv(3).
  std::ranges::stable_sort(variables, {}, &Variable::name);
  const auto twice = std::ranges::unique(variables, {}, &Variable::name);
  variables.erase(twice.begin(), twice.end());
  Environment result;
  result.strings_.reserve(variables.size());
  for (const Variable& variable : variables) result.strings_.emplace_back(variable.text);
  return result;
}

std::optional<std::string_view> Environment::value_of(std::string_view name) const {
  const auto [position, exists] = find_in(strings_, joined(name, ""));
  if (!exists) return std::nullopt;
  return std::string_view(*position).substr(name.size() + 1);
}

std::optional<std::string> Environment::find(std::string_view name) const {
  const auto value = value_of(name);
  if (!value) return std::nullopt;
  return std::string(*value);
}

std::string Environment::get(std::string_view name, std::string_view default_value) const {
  return std::string(value_of(name).value_or(default_value));
}

void Environment::set(std::string_view name, std::string_view value) {
  std::string variable = joined(name, value);
  const auto [position, exists] = find_in(strings_, std::string_view(variable).substr(0, name.size() + 1));
  if (exists) {
    *position = std::move(variable);
  } else {
    strings_.insert(position, std::move(variable));
  }
}

void Environment::erase(std::string_view name) {
  const auto [position, exists] = find_in(strings_, joined(name, ""));
  if (exists) strings_.erase(position);
}

void Environment::overlay(const Environment& over) {
  std::vector<std::string> merged;
  merged.reserve(strings_.size() + over.strings_.size());
  auto position = strings_.begin();
  for (const std::string& variable : over.strings_) {
    const std::string_view name = name_in(variable);
    while (position != strings_.end() && name_in(*position) < name) merged.push_back(std::move(*position++));
    if (position != strings_.end() && name_in(*position) == name) ++position;
    merged.push_back(variable);
  }
  std::ranges::move(position, strings_.end(), std::back_inserter(merged));
  strings_ = std::move(merged);
}

Environment::Variables Environment::variables() const {
  Variables result;
  for (const std::string& variable : strings_) {
    const std::size_t equals = variable.find('=');
    result.emplace(variable.substr(0, equals), variable.substr(equals + 1));
  }
  return result;
}

}  // namespace acc
