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

/// Facts about the machine that the interview uses.
struct InterviewFacts {
  int gpus = 0;
  /// The folder that relative paths are resolved against.
  std::filesystem::path folder = {};
  /// Used to expand `~` in paths.
  Environment environment = {};
};

/// The state of a questionnaire: the current question and the answers so far. An invalid answer is refused
/// with a reason and leaves the state unchanged.
class Interview {
 public:
  explicit Interview(InterviewFacts facts);

  /// The current question; null at the end.
  const Question* current() const;
  /// The choices of the current question, if it is a menu.
  std::vector<Choice> choices() const;
  /// The text that an empty answer to the current question stands for: the answer given before go_back(),
  /// else the default. Empty if an answer is required.
  std::string default_answer() const;

  /// Answers the current question with a line. An empty line stands for default_answer(), `y` and `n` for
  /// yes and no; a menu accepts the text or the index of a choice. Returns the reason if the answer is
  /// refused.
  std::optional<std::string> answer(std::string_view line);
  /// Undoes the latest answer: its question becomes current again. Returns false at the first question.
  bool go_back();

  /// Help for the current question: its own text, or that of its setting with key, flag and variable.
  std::string help() const;

  /// Answers the current menu with the choice of this index.
  std::optional<std::string> choose(std::size_t index);

  /// The values of the config file that the answers describe.
  ConfigValues values() const;

 private:
  std::optional<std::string> accept(Choice choice);
  std::optional<std::string> accept_number(const std::string& text);
  void write(std::string_view key, Value value, bool append);
  void advance(std::string_view back_to);

  InterviewFacts facts_;
  Answers answers_ = {};
  std::size_t next_ = 0;
  /// The state before each answer, and the text of the answer.
  struct State {
    Answers answers = {};
    std::size_t next = 0;
    std::string answered = {};
  };
  std::vector<State> history_ = {};
  /// Undone answers by the name of their question; never secrets.
  std::map<std::string_view, std::string> undone_ = {};
};

/// Prepared answers, by the name of the question or by the key that it writes (`fsdp_config.fsdp_version`),
/// and the position (`file:line`) of each. Several are the items of one answer, or of a question that is
/// asked again (`commands`) the answers in turn.
struct AnswerSheet {
  std::map<std::string, std::vector<std::string>, std::less<>> answers = {};
  std::map<std::string, std::string, std::less<>> positions = {};
};

/// Reads a file of `question: answer` lines (YAML, or JSON by its suffix). Throws Error{config} with
/// file:line for any other content, Error{system} if the file cannot be read.
AnswerSheet read_answers(const std::filesystem::path& file);

/// Answers every question from the sheet, or with its default. Throws Error{config} for a question without
/// an answer, for a refused answer with its reason, and for answers to questions that were not asked.
void answer_all(Interview& interview, const AnswerSheet& sheet);

}  // namespace acc::launcher
