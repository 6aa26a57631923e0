// SPDX-License-Identifier: Apache-2.0
#include "acc/config/terminal_menu.hpp"

#include <string_view>

#include "acc/base/text.hpp"

namespace acc {
namespace {

constexpr std::string_view kHideCursor = "\x1b[?25l";
constexpr std::string_view kShowCursor = "\x1b[?25h";
constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr std::string_view kEraseBelow = "\r\x1b[J";
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kPlain = "\x1b[0m";

std::string up(std::size_t lines) {
  return "\x1b[" + std::to_string(lines) + "A";
}
std::string down(std::size_t lines) {
  return "\x1b[" + std::to_string(lines) + "B";
}
std::string green(const std::string& text) {
  return std::string(kGreen) + text + std::string(kPlain);
}

}  // namespace

std::string TerminalMenu::draw() const {
  std::string text = "(arrows, j/k, numbers from 0 or letters, then Enter; Esc: back, ?: help)\n";
  text += kHideCursor;
  for (std::size_t i = 0; i < choices_.size(); ++i) text += line(i) + "\n";
  return text;
}

std::string TerminalMenu::press(const KeyPress& press) {
  const std::size_t before = chosen_;
  move(press);
  return chosen_ == before ? "" : redraw(before) + redraw(chosen_);
}

std::string TerminalMenu::close() const {
  std::string text = up(choices_.size() + 1);
  text += kEraseBelow;
  text += green(choices_[chosen_]) + "\n";
  return text + std::string(kShowCursor);
}

std::string TerminalMenu::dismiss() const {
  return up(choices_.size() + 1) + std::string(kEraseBelow) + std::string(kShowCursor);
}

void TerminalMenu::move(const KeyPress& press) {
  const std::size_t last = choices_.size() - 1;
  if (press.key == Key::home) chosen_ = 0;
  if (press.key == Key::end) chosen_ = last;
  const bool searching = !letters_.empty();
  if ((press.key == Key::up || (press.text == "k" && !searching)) && chosen_ > 0) --chosen_;
  if ((press.key == Key::down || (press.text == "j" && !searching)) && chosen_ < last) ++chosen_;
  std::optional<std::size_t> digits;
  if (const auto digit = parse_integer(press.text)) {
    const auto one = static_cast<std::size_t>(*digit);
    if (one <= last) digits = one;
    // 1 and then 0 mean 10, where there is a 10.
    if (digits_ && *digits_ * 10 + one <= last) digits = *digits_ * 10 + one;
    chosen_ = digits.value_or(chosen_);
  }
  digits_ = digits;
  search(press.key == Key::text && !digits ? press.text : "");
}

// More letters narrow the search; one that leads nowhere begins a new one.
void TerminalMenu::search(const std::string& letter) {
  if (letter.empty() || (letters_.empty() && (letter == "j" || letter == "k"))) return letters_.clear();
  for (const std::string& wanted : {letters_ + to_lower(letter), to_lower(letter)}) {
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      if (!to_lower(choices_[i]).starts_with(wanted)) continue;
      letters_ = wanted;
      chosen_ = i;
      return;
    }
  }
  letters_.clear();
}

std::string TerminalMenu::line(std::size_t index) const {
  return index == chosen_ ? " \u2794  " + green(choices_[index]) : "    " + choices_[index];
}

std::string TerminalMenu::redraw(std::size_t index) const {
  const std::size_t distance = choices_.size() - index;
  return up(distance) + std::string(kEraseLine) + line(index) + "\r" + down(distance);
}

}  // namespace acc
