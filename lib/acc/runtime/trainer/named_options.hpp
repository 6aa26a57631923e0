// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "acc/runtime/trainer/argument_range.hpp"
#include "acc/runtime/trainer/training_arguments.hpp"

namespace acc::detail {

/// The named options of a training argument. Each is taken by its name; one that nobody takes is an error.
class NamedOptions {
 public:
  /// `argument` is the argument's name in errors.
  NamedOptions(std::map<std::string, NumberOrWord> options, const char* argument)
      : options_(std::move(options)), argument_(argument) {}

  /// Parses `momentum=0.9,nesterov=1`. Throws Error{usage} for a part that is not a name with a number.
  static NamedOptions parse(const std::string& text, const char* argument);

  /// Removes the number of this name and returns it, if there is one. Throws Error{usage} for a word.
  std::optional<double> take(const std::string& name);
  /// Likewise, with a default.
  double take(const std::string& name, double default_value) { return take(name).value_or(default_value); }
  /// Likewise; throws Error{usage} for a number outside of the range.
  double take(const std::string& name, double default_value, Range range);
  /// Likewise; throws Error{usage} if there is none.
  double take_required(const std::string& name);

  /// Removes the word of this name and returns what it stands for. Throws Error{usage} for others.
  template <class Choice>
  Choice take_choice(const std::string& name, std::initializer_list<std::pair<const char*, Choice>> choices,
                     Choice default_value) {
    const std::optional<std::string> word = take_word(name);
    if (!word) return default_value;
    std::vector<std::string> words;
    for (const auto& [known, choice] : choices) {
      if (*word == known) return choice;
      words.emplace_back(known);
    }
    refuse(name, "'" + *word + "' is not one of its values", words);
  }

  /// Throws Error{usage} with the name of an option that was not taken.
  void require_empty() const;

 private:
  std::optional<std::string> take_word(const std::string& name);
  [[noreturn]] void refuse(const std::string& name, const std::string& what,
                           const std::vector<std::string>& values) const;

  std::map<std::string, NumberOrWord> options_;
  const char* argument_;
};

}  // namespace acc::detail
