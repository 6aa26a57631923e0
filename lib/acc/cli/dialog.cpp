// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/dialog.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

std::string ask_one(const Interview& interview, Dialog& dialog) {
  const Question& question = *interview.current();
  const std::string default_answer = interview.default_answer();
  if (question.kind == QuestionKind::secret) return dialog.ask_secret(question.prompt);
  if (question.kind != QuestionKind::menu) {
    if (!default_answer.empty() || question.example.empty())
      return dialog.ask(question.prompt, default_answer);
    return dialog.ask(fmt::format("{} (such as {})", question.prompt, question.example), "");
  }
  std::vector<std::string> labels;
  for (const Choice& choice : interview.choices()) labels.push_back(choice.label);
  const auto preset = std::ranges::find(labels, default_answer);
  const std::size_t index = preset == labels.end() ? 0 : static_cast<std::size_t>(preset - labels.begin());
  return dialog.ask_menu(question.prompt, labels, index);
}

// Handles a line of input. Returns the text to show before the next question, if any.
std::optional<std::string> handle_line(Interview& interview, const std::string& line) {
  if (line == kAskHelp) return interview.help();
  if (line != kGoBack) {
    const auto reason = interview.answer(line);
    return reason ? std::optional(*reason + " (? explains, Esc goes back)") : std::nullopt;
  }
  if (interview.go_back()) return std::nullopt;
  return "this is the first question";
}

}  // namespace

void run_interview(Interview& interview, Dialog& dialog) {
  while (interview.current() != nullptr) {
    const std::string prompt(interview.current()->prompt);
    try {
      if (const auto words = handle_line(interview, ask_one(interview, dialog))) dialog.show(*words);
    } catch (const Error& error) {
      throw Error({.kind = error.kind(),
                   .what = fmt::format("{}, and this question has no answer: {}", error.what(), prompt)});
    }
  }
}

std::string LineDialog::read_line() {
  out_.flush();
  std::string line;
  const bool got_line = static_cast<bool>(std::getline(in_, line));
  out_ << '\n';
  if (!got_line) throw Error({.what = "the input ended"});
  return line;
}

void LineDialog::show(std::string_view text) {
  out_ << text << '\n';
}

std::string LineDialog::ask(std::string_view prompt, std::string_view default_answer) {
  out_ << prompt;
  if (!default_answer.empty()) out_ << " [" << default_answer << ']';
  out_ << ' ';
  return read_line();
}

std::string LineDialog::ask_menu(std::string_view prompt, const std::vector<std::string>& choices,
                                 std::size_t default_choice) {
  out_ << prompt << '\n';
  for (std::size_t i = 0; i < choices.size(); ++i) out_ << "  " << i << ") " << choices[i] << '\n';
  out_ << "Number or text [" << choices[default_choice] << "] ";
  return read_line();
}

}  // namespace acc::launcher
