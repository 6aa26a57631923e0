// SPDX-License-Identifier: Apache-2.0
#include "acc/base/environment.hpp"

#include <unistd.h>

namespace acc {

Environment Environment::of_process() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    result.set(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
  }
  return result;
}

std::optional<std::string> Environment::find(std::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

std::string Environment::get(std::string_view name, std::string_view default_value) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? std::string(default_value) : found->second;
}

void Environment::overlay(const Environment& over) {
  for (const auto& [name, value] : over.variables_) variables_[name] = value;
}

std::vector<std::string> Environment::to_strings() const {
  std::vector<std::string> result;
  result.reserve(variables_.size());
  for (const auto& [name, value] : variables_) result.push_back(name + "=" + value);
  return result;
}

}  // namespace acc
