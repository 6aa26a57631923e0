// SPDX-License-Identifier: Apache-2.0
#include "acc/config/dialog.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "acc/base/error.hpp"

namespace acc {
namespace {

std::optional<std::string> ask_one(Interview& interview, Dialog& dialog) {
  const Question& question = *interview.current();
  const std::string otherwise = interview.otherwise();
  if (question.kind != QuestionKind::menu) return interview.answer(dialog.ask(question.prompt, otherwise));
  std::vector<std::string> labels;
  for (const Choice& choice : interview.choices()) labels.push_back(choice.label);
  const auto preset = std::ranges::find(labels, otherwise);
  const std::size_t index = preset == labels.end() ? 0 : static_cast<std::size_t>(preset - labels.begin());
  return interview.answer(dialog.ask_menu(question.prompt, labels, index));
}

}  // namespace

void run_interview(Interview& interview, Dialog& dialog) {
  while (interview.current() != nullptr) {
    const std::string prompt(interview.current()->prompt);
    try {
      if (const auto reason = ask_one(interview, dialog)) dialog.say(*reason);
    } catch (const Error& error) {
      throw Error({.kind = error.kind(),
                   .what = fmt::format("{}, and this question has no answer: {}", error.what(), prompt)});
    }
  }
}

}  // namespace acc
