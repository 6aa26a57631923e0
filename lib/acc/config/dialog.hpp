// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "acc/config/interview.hpp"

namespace acc::launcher {

/// The person ended the dialog with Ctrl-C: nothing is to be done but to leave with 130.
struct Interrupted {};

/// The line that stands for the wish to go back to the question before.
inline constexpr std::string_view kGoBack = "\x1b";
/// The line that asks what the question is about.
inline constexpr std::string_view kAskHelp = "?";

/// How a person is asked: the seam between an interview and a terminal, a pipe or a test.
class Dialog {
 public:
  virtual ~Dialog() = default;

  /// Shows a line.
  virtual void say(std::string_view text) = 0;
  /// A line of text, without its end, or kGoBack, or kAskHelp. `otherwise` is shown as what an empty line
  /// means. Throws Error{usage} when the input ends; Interrupted.
  virtual std::string ask(std::string_view prompt, std::string_view otherwise) = 0;
  /// The same for what nobody may see on the screen; an empty line is an answer.
  virtual std::string ask_secret(std::string_view prompt) = 0;
  /// The answer of a menu: a choice's text or its index, or an empty line, or kGoBack, or kAskHelp. Throws as
  /// ask().
  virtual std::string ask_menu(std::string_view prompt, const std::vector<std::string>& choices,
                               std::size_t otherwise) = 0;
};

/// Asks all questions of the interview; a refused answer is asked again after its reason.
/// Throws what the dialog throws; an Error then names the question.
void run_interview(Interview& interview, Dialog& dialog);

}  // namespace acc::launcher
