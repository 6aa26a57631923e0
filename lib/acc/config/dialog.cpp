// SPDX-License-Identifier: Apache-2.0
#include "acc/config/dialog.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

std::string ask_one(const Interview& interview, Dialog& dialog) {
  const Question& question = *interview.current();
  const std::string otherwise = interview.otherwise();
  if (question.kind == QuestionKind::secret) return dialog.ask_secret(question.prompt);
  if (question.kind != QuestionKind::menu) return dialog.ask(question.prompt, otherwise);
  std::vector<std::string> labels;
  for (const Choice& choice : interview.choices()) labels.push_back(choice.label);
  const auto preset = std::ranges::find(labels, otherwise);
  const std::size_t index = preset == labels.end() ? 0 : static_cast<std::size_t>(preset - labels.begin());
  return dialog.ask_menu(question.prompt, labels, index);
}

// What is to be said before the next question, if anything.
std::optional<std::string> take(Interview& interview, const std::string& line) {
  if (line == kAskHelp) return interview.help();
  if (line != kGoBack) return interview.answer(line);
  if (interview.go_back()) return std::nullopt;
  return "this is the first question";
}

}  // namespace

void run_interview(Interview& interview, Dialog& dialog) {
  while (interview.current() != nullptr) {
    const std::string prompt(interview.current()->prompt);
    try {
      if (const auto words = take(interview, ask_one(interview, dialog))) dialog.say(*words);
    } catch (const Error& error) {
      throw Error({.kind = error.kind(),
                   .what = fmt::format("{}, and this question has no answer: {}", error.what(), prompt)});
    }
  }
}

}  // namespace acc::launcher
