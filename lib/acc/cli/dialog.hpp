// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <istream>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "acc/config/interview.hpp"

namespace acc::launcher {

/// Thrown when the user presses Ctrl-C. The program exits with 130.
struct Interrupted {};

/// The input that returns to the previous question.
inline constexpr std::string_view kGoBack = "\x1b";
/// The input that shows help for the question.
inline constexpr std::string_view kAskHelp = "?";

/// The interface through which an interview asks: a terminal, a pipe or a fake in tests.
class Dialog {
 public:
  virtual ~Dialog() = default;

  /// Shows a line.
  virtual void show(std::string_view text) = 0;
  /// Asks for a line of text. Returns the line, kGoBack or kAskHelp. `default_answer` is shown as the
  /// meaning of an empty line. Throws Error{usage} at the end of the input, and Interrupted.
  virtual std::string ask(std::string_view prompt, std::string_view default_answer) = 0;
  /// The same without echo; an empty line is a valid answer.
  virtual std::string ask_secret(std::string_view prompt) = 0;
  /// Asks for a choice. Returns its text or index, an empty line, kGoBack or kAskHelp. Throws as ask()
  /// does.
  virtual std::string ask_menu(std::string_view prompt, const std::vector<std::string>& choices,
                               std::size_t default_choice) = 0;
};

/// Asks all questions of the interview. After a refused answer it shows the reason and asks again. Throws
/// what the dialog throws; an Error names the question.
void run_interview(Interview& interview, Dialog& dialog);

/// A dialog line by line, for pipes and files: writes questions to `out`, reads answers from `in`.
class LineDialog : public Dialog {
 public:
  LineDialog(std::istream& in, std::ostream& out) : in_(in), out_(out) {}

  void show(std::string_view text) override;
  std::string ask(std::string_view prompt, std::string_view default_answer) override;
  std::string ask_secret(std::string_view prompt) override { return ask(prompt, ""); }
  std::string ask_menu(std::string_view prompt, const std::vector<std::string>& choices,
                       std::size_t default_choice) override;

 private:
  std::string read_line();

  std::istream& in_;
  std::ostream& out_;
};

}  // namespace acc::launcher
