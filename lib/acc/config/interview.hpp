// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/config/questions.hpp"

namespace acc::launcher {

/// What an interview needs to know of the machine.
struct InterviewFacts {
  int gpus = 0;
  /// Paths are made absolute from here.
  std::filesystem::path folder = {};
  /// For `~` in paths.
  Environment environment = {};
};

/// Goes through the questions: which one is next, and what the answers make. An answer that does not fit is
/// refused with a reason, and the same question stays; what was answered before is never lost.
class Interview {
 public:
  explicit Interview(InterviewFacts facts);

  /// The question to ask now; null when there are no more.
  const Question* current() const;
  /// Of the current question, if it is a menu.
  std::vector<Choice> choices() const;
  /// What an empty answer to the current question means, as it would be typed: the answer that was taken back
  /// here, else the default. Empty: an answer is needed.
  std::string otherwise() const;

  /// Takes a line as the answer; an empty one means otherwise(), `y` and `n` do as yes and no, a choice of a
  /// menu is meant by its text or by its index. Returns why the answer was refused, if it was.
  std::optional<std::string> answer(std::string_view line);
  /// Takes back the latest answer, so that its question is the current one again. False when there is none.
  bool go_back();

  /// What the current question is about: its own help, or the setting's, with its key, flag and variable.
  std::string help() const;

  /// Takes a choice of a menu.
  std::optional<std::string> choose(std::size_t index);

  /// The file that the answers make.
  ConfigValues values() const;

 private:
  std::optional<std::string> take(Choice choice);
  std::optional<std::string> take_number(const std::string& text);
  void write(std::string_view key, Value value, bool append);
  void advance(std::string_view back_to);

  InterviewFacts facts_;
  Answers answers_ = {};
  std::size_t next_ = 0;
  /// How things were before each answer, and the answer as it would be typed.
  struct Moment {
    Answers answers = {};
    std::size_t next = 0;
    std::string answered = {};
  };
  std::vector<Moment> past_ = {};
  /// By the name of the question; never secrets.
  std::map<std::string_view, std::string> taken_back_ = {};
};

}  // namespace acc::launcher
