// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
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
  explicit Environment(const Variables& variables);
  Environment(std::initializer_list<std::pair<std::string_view, std::string_view>> variables);

  /// A copy of the environment of this process.
  static Environment of_process();

  /// The value; nullopt if the variable is not set. It may be empty.
  std::optional<std::string> find(std::string_view name) const;
  std::string get(std::string_view name, std::string_view default_value = "") const;
  bool contains(std::string_view name) const { return value_of(name).has_value(); }

  void set(std::string_view name, std::string_view value);
  void erase(std::string_view name);

  /// Sets every variable of `over`, replacing those that exist.
  void overlay(const Environment& over);

  /// Sorted `NAME=value` strings, as execve(2) takes them.
  const std::vector<std::string>& to_strings() const& { return strings_; }
  std::vector<std::string> to_strings() && { return std::move(strings_); }

  Variables variables() const;
  bool empty() const { return strings_.empty(); }
  bool operator==(const Environment&) const = default;

 private:
  std::optional<std::string_view> value_of(std::string_view name) const;

  // In this form, since one is made and executed for each worker.
  std::vector<std::string> strings_ = {};
};

}  // namespace acc
