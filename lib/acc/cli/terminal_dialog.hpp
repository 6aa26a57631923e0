// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/cli/dialog.hpp"
#include "acc/cli/raw_terminal.hpp"

namespace acc::launcher {

/// A dialog in a terminal with menus (arrows, j and k, digits, first letters, Home and End) and editable
/// lines. Esc and the left arrow return to the previous question, `?` shows help, Ctrl-Z stops the program.
///
/// The terminal is in raw mode for the lifetime of the object, so that keys pressed ahead are not echoed
/// twice.
class TerminalDialog : public Dialog {
 public:
  /// Throws as RawTerminal does.
  TerminalDialog(int input, int output, bool color = true) : terminal_(input, output), color_(color) {}

  void show(std::string_view text) override;
  std::string ask(std::string_view prompt, std::string_view default_answer) override;
  std::string ask_secret(std::string_view prompt) override;
  std::string ask_menu(std::string_view prompt, const std::vector<std::string>& choices,
                       std::size_t default_choice) override;

 private:
  std::string read_line(const std::string& question, bool hidden) const;

  RawTerminal terminal_;
  bool color_;
};

}  // namespace acc::launcher
