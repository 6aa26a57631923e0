// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>

namespace acc::detail {

/// The named numbers of a training argument. Each is taken by its name; one that nobody takes is an error.
class NamedNumbers {
 public:
  /// `argument` is the argument's name in errors.
  NamedNumbers(std::map<std::string, double> numbers, const char* argument)
      : numbers_(std::move(numbers)), argument_(argument) {}

  /// Parses `momentum=0.9,nesterov=1`. Throws Error{usage} for a part that is not a name with a number.
  static NamedNumbers parse(const std::string& text, const char* argument);

  /// Removes the number of this name and returns it, or `default_value` if there is none.
  double take(const std::string& name, double default_value);

  /// Throws Error{usage} with the name of a number that was not taken.
  void require_empty() const;

 private:
  std::map<std::string, double> numbers_;
  const char* argument_;
};

}  // namespace acc::detail
