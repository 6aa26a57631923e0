// SPDX-License-Identifier: Apache-2.0
#include "acc/config/terminal_line.hpp"

#include "acc/base/wrap.hpp"

namespace acc::launcher {
namespace {

void erase_character(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80U) text.pop_back();
  if (!text.empty()) text.pop_back();
}

void erase_word(std::string& text) {
  while (text.ends_with(' ')) erase_character(text);
  while (!text.empty() && !text.ends_with(' ')) erase_character(text);
}

std::string backspaces(std::size_t characters) {
  std::string result;
  for (std::size_t i = 0; i < characters; ++i) result += "\b \b";
  return result;
}

}  // namespace

std::size_t TerminalLine::shown_characters() const {
  return count_characters(before_) + (hidden_ ? 0 : count_characters(text_));
}

std::string TerminalLine::draw() const {
  return hidden_ ? before_ : before_ + text_;
}

std::string TerminalLine::press(const KeyPress& press, std::size_t columns) {
  if (press.key == Key::text) {
    text_ += press.text;
    return hidden_ ? "" : press.text;
  }
  const std::size_t before = shown_characters();
  if (press.key == Key::backspace) erase_character(text_);
  if (press.key == Key::erase_word) erase_word(text_);
  if (press.key == Key::erase_line) text_.clear();
  const std::size_t erased = before - shown_characters();
  if (erased == 0 || before < columns) return backspaces(erased);
  // A backspace does not go up to the row before: all is drawn again.
  const std::size_t rows = (before - 1) / columns;
  return (rows == 0 ? "" : "\x1b[" + std::to_string(rows) + "A") + "\r\x1b[J" + draw();
}

}  // namespace acc::launcher
