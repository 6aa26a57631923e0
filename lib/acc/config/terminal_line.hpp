// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "acc/config/terminal_keys.hpp"

namespace acc::launcher {

/// A line of text that is typed on a terminal: what to write there, and what the text is. Pure.
class TerminalLine {
 public:
  /// `before` is what stands in the same line before the text. A `hidden` text is not shown.
  explicit TerminalLine(std::string before, bool hidden = false)
      : before_(std::move(before)), hidden_(hidden) {}

  const std::string& text() const { return text_; }

  /// What stands before the text, and the text.
  std::string draw() const;
  /// Takes characters, Backspace, Ctrl-W and Ctrl-U. What to write on a terminal of so many columns.
  std::string press(const KeyPress& press, std::size_t columns);

 private:
  std::size_t shown_characters() const;

  std::string before_;
  bool hidden_;
  std::string text_ = {};
};

}  // namespace acc::launcher
