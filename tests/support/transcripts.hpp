// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "acc/config/interview.hpp"
#include "acc/config/write.hpp"
#include "support/recordings.hpp"

namespace acc::test {

using namespace launcher;

/// Answers an interview as in a recorded questionnaire. Returns why the last answer was refused, if it was.
/// Throws if the interview asks another question than accelerate did.
inline std::optional<std::string> feed(Interview& interview, const nlohmann::json& transcript) {
  std::optional<std::string> refused;
  for (const auto& entry : transcript) {
    const Question* question = interview.current();
    if (question == nullptr) throw std::runtime_error("the interview ended early");
    const std::string name(question->name);
    if ((entry.at("type") == "menu") != (question->kind == QuestionKind::menu))
      throw std::runtime_error("another question: " + name);
    if (question->kind != QuestionKind::menu) {
      refused = interview.answer(entry.at("answer").get<std::string>());
      continue;
    }
    const std::size_t offered = entry.at("choices").size();
    const std::size_t preset = entry.at("default").get<std::size_t>();
    if (interview.choices().size() < offered ||
        interview.choices().at(preset).label != interview.default_answer())
      throw std::runtime_error("another menu: " + name);
    refused = interview.choose(entry.at("answer").get<std::size_t>());
  }
  return refused;
}

/// The config file of the recorded answers, in accelerate's format.
inline std::string file_of(const std::string& name) {
  Interview interview({.folder = "/work", .environment = {{"HOME", "/home/user"}}});
  const auto recorded = recording(name);
  if (const auto reason = feed(interview, recorded.at("transcript"))) throw std::runtime_error(*reason);
  if (interview.current() != nullptr)
    throw std::runtime_error("one more question: " + std::string(interview.current()->name));
  return format_config(interview.values(), "config.yaml");
}

/// The config file that accelerate wrote.
inline std::string recorded_file(const std::string& name) {
  return recording(name).at("yaml").get<std::string>();
}

/// An interview after these lines of input.
inline Interview interview_after(const std::vector<std::string>& lines, int gpus = 0) {
  Interview interview({.gpus = gpus, .folder = "/work", .environment = {{"HOME", "/home/user"}}});
  for (const std::string& line : lines) {
    if (const auto reason = interview.answer(line)) throw std::runtime_error(line + ": " + *reason);
  }
  return interview;
}

inline std::string current_name(const Interview& interview) {
  return interview.current() == nullptr ? "" : std::string(interview.current()->name);
}

}  // namespace acc::test
