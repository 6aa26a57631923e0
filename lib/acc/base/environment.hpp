// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace acc {

/// A set of environment variables as data. The process's own environment is read here and nowhere else.
class Environment {
 public:
  using Variables = std::map<std::string, std::string, std::less<>>;

  Environment() = default;
  explicit Environment(Variables variables) : variables_(std::move(variables)) {}
  Environment(std::initializer_list<Variables::value_type> variables) : variables_(variables) {}

  /// A copy of the environment of this process.
  static Environment of_process();

  /// The value; nullopt if the variable is not set. It may be empty.
  std::optional<std::string> find(std::string_view name) const;
  std::string get(std::string_view name, std::string_view default_value = "") const;
  bool contains(std::string_view name) const { return variables_.contains(name); }

  void set(std::string name, std::string value) { variables_[std::move(name)] = std::move(value); }
  void erase(const std::string& name) { variables_.erase(name); }

  /// Sets every variable of `over`, replacing those that exist.
  void overlay(const Environment& over);

  /// `NAME=value` strings sorted by name, as execve(2) takes them.
  std::vector<std::string> to_strings() const;

  const Variables& variables() const& { return variables_; }
  Variables variables() && { return std::move(variables_); }
  bool empty() const { return variables_.empty(); }
  bool operator==(const Environment&) const = default;

 private:
  Variables variables_ = {};
};

}  // namespace acc
