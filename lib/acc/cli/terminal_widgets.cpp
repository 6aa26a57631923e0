// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/terminal_widgets.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "acc/base/text.hpp"
#include "acc/cli/raw_terminal.hpp"

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
  // A backspace does not move to the previous row, so everything is redrawn.
  const std::size_t rows = (before - 1) / columns;
  return (rows == 0 ? "" : "\x1b[" + std::to_string(rows) + "A") + "\r\x1b[J" + draw();
}

namespace {

constexpr std::string_view kHideCursor = "\x1b[?25l";
constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr std::string_view kEraseBelow = "\r\x1b[J";
constexpr std::size_t kIndent = 4;
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kPlain = "\x1b[0m";

std::string up(std::size_t lines) {
  return "\x1b[" + std::to_string(lines) + "A";
}
std::string down(std::size_t lines) {
  return "\x1b[" + std::to_string(lines) + "B";
}

// The longest hint about the keys that fits into a line.
std::string_view about_keys(std::size_t columns) {
  constexpr std::array<std::string_view, 3> kTexts = {
      "(arrows, j/k, numbers from 0 or letters, then Enter; Esc: back, ?: help)",
      "(arrows, Enter; Esc: back, ?: help)", "(?: help)"};
  const auto* const fits =
      std::ranges::find_if(kTexts, [&](std::string_view text) { return text.size() < columns; });
  return fits == kTexts.end() ? "" : *fits;
}

}  // namespace

std::size_t TerminalMenu::width() const {
  std::size_t widest = about_keys(columns_).size();
  for (const std::string& choice : choices_) widest = std::max(widest, kIndent + count_characters(choice));
  return std::min(widest, columns_ - 1);
}

std::string TerminalMenu::draw() const {
  std::string text = std::string(about_keys(columns_)) + "\n";
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
  text += highlighted(choices_[chosen_]) + "\n";
  return text + std::string(kShowCursor);
}

std::string TerminalMenu::dismiss() const {
  return up(choices_.size() + 1) + std::string(kEraseBelow) + std::string(kShowCursor);
}

void TerminalMenu::move(const KeyPress& press) {
  const std::size_t last = choices_.size() - 1;
  if (press.key == Key::home || press.key == Key::page_up) chosen_ = 0;
  if (press.key == Key::end || press.key == Key::page_down) chosen_ = last;
  // In a search j and k are letters if a choice matches.
  const bool searching = !letters_.empty() && find_beginning(letters_ + press.text).has_value();
  if ((press.key == Key::up || (press.text == "k" && !searching)) && chosen_ > 0) --chosen_;
  if ((press.key == Key::down || (press.text == "j" && !searching)) && chosen_ < last) ++chosen_;
  std::optional<std::size_t> digits;
  if (const auto digit = parse_integer(press.text)) {
    const auto one = static_cast<std::size_t>(*digit);
    if (one <= last) digits = one;
    // 1 and then 0 select 10 if there is a choice 10.
    if (digits_ && *digits_ * 10 + one <= last) digits = *digits_ * 10 + one;
    chosen_ = digits.value_or(chosen_);
  }
  digits_ = digits;
  search(press.key == Key::text && !digits ? press.text : "");
}

std::optional<std::size_t> TerminalMenu::find_beginning(const std::string& letters) const {
  const auto found = std::ranges::find_if(
      choices_, [&](const std::string& choice) { return to_lower(choice).starts_with(letters); });
  if (found == choices_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - choices_.begin());
}

// Further letters narrow the search; a letter without a match starts a new one.
void TerminalMenu::search(const std::string& letter) {
  const bool moves = letter == "j" || letter == "k";
  if (letter.empty() || (moves && !find_beginning(letters_ + letter)) || (moves && letters_.empty()))
    return letters_.clear();
  for (const std::string& wanted : {letters_ + to_lower(letter), to_lower(letter)}) {
    const auto found = find_beginning(wanted);
    if (!found) continue;
    letters_ = wanted;
    chosen_ = *found;
    return;
  }
  letters_.clear();
}

std::string TerminalMenu::line(std::size_t index) const {
  // The last column stays free: terminals differ in how they wrap after it.
  const std::string text =
      cut_characters(choices_[index], columns_ > kIndent + 1 ? columns_ - kIndent - 1 : 0);
  return index == chosen_ ? " \u2794  " + highlighted(text) : std::string(kIndent, ' ') + text;
}

std::string TerminalMenu::highlighted(const std::string& text) const {
  return color_ ? std::string(kGreen) + text + std::string(kPlain) : text;
}

std::string TerminalMenu::redraw(std::size_t index) const {
  const std::size_t distance = choices_.size() - index;
  return up(distance) + std::string(kEraseLine) + line(index) + "\r" + down(distance);
}

}  // namespace acc::launcher
