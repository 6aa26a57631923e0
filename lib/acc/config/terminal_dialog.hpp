// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "acc/config/dialog.hpp"

namespace acc {

/// A dialog in a terminal: menus with arrows, j and k, digits, first letters, Home and End; lines that can be
/// corrected. Esc and the left arrow go back a question, `?` asks for help.
///
/// The terminal is in raw mode as long as the object lives, so keys typed early are not echoed twice. It is
/// given back as it was, with its cursor, at the end, on an exception, and before a signal ends the program.
class TerminalDialog : public Dialog {
 public:
  /// Reads keys from `input` and draws on `output`; both stay open and belong to the caller.
  /// Throws Error{system} when `input` is not a terminal.
  TerminalDialog(int input, int output);
  ~TerminalDialog() override;
  TerminalDialog(const TerminalDialog&) = delete;
  TerminalDialog& operator=(const TerminalDialog&) = delete;

  void say(std::string_view text) override;
  std::string ask(std::string_view prompt, std::string_view otherwise) override;
  std::string ask_menu(std::string_view prompt, const std::vector<std::string>& choices,
                       std::size_t otherwise) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc
