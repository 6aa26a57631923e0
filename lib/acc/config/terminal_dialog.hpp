// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/config/dialog.hpp"
#include "acc/config/raw_terminal.hpp"

namespace acc::launcher {

/// A dialog in a terminal: menus with arrows, j and k, digits, first letters, Home and End; lines that can be
/// corrected. Esc and the left arrow go back a question, `?` asks for help, Ctrl-Z stops the program.
///
/// The terminal is raw as long as the object lives, so keys typed early are not echoed twice.
class TerminalDialog : public Dialog {
 public:
  /// Throws as RawTerminal does.
  TerminalDialog(int input, int output, bool color = true) : terminal_(input, output), color_(color) {}

  void say(std::string_view text) override;
  std::string ask(std::string_view prompt, std::string_view otherwise) override;
  std::string ask_secret(std::string_view prompt) override;
  std::string ask_menu(std::string_view prompt, const std::vector<std::string>& choices,
                       std::size_t otherwise) override;

 private:
  std::string read_line(const std::string& question, bool hidden) const;

  RawTerminal terminal_;
  bool color_;
};

}  // namespace acc::launcher
