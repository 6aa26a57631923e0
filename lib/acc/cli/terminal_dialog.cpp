// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/terminal_dialog.hpp"

#include <algorithm>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/cli/terminal_widgets.hpp"

namespace acc::launcher {
namespace {

std::size_t count_lines(const std::string& text) {
  return 1 + static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

// Redraws the menu after a change of the size: in place if the terminal wrapped none of its lines, else
// below.
std::string draw_resized(TerminalMenu& menu, const std::string& question, std::size_t columns) {
  const bool broken = menu.width() >= columns;
  menu.set_columns(columns);
  return broken ? "\r\x1b[J" + question + "\n" + menu.draw() : menu.dismiss() + menu.draw();
}

}  // namespace

void TerminalDialog::show(std::string_view text) {
  terminal_.write(wrap(text, 0, terminal_.columns()) + "\n");
}

std::string TerminalDialog::ask(std::string_view prompt, std::string_view default_answer) {
  std::string question(prompt);
  if (!default_answer.empty()) question += " [" + std::string(default_answer) + "]";
  return read_line(question, false);
}

std::string TerminalDialog::ask_secret(std::string_view prompt) {
  return read_line(std::string(prompt), true);
}

std::string TerminalDialog::read_line(const std::string& question, bool hidden) const {
  const std::string wrapped = wrap(question, 0, terminal_.columns() - 1) + " ";
  const std::size_t last = wrapped.rfind('\n') + 1;  // 0 if there is one line
  TerminalLine line(wrapped.substr(last), hidden);
  const std::string above = wrapped.substr(0, last);
  terminal_.write(above + line.draw());
  for (;;) {
    const KeyPress press = terminal_.next_key();
    const bool back = press.key == Key::escape || (press.key == Key::left && line.text().empty());
    if (press.key == Key::enter || back) {
      terminal_.write("\n");
      return back ? std::string(kGoBack) : line.text();
    }
    if (press.key == Key::end_of_file && line.text().empty()) throw Error({.what = "the input ended"});
    const std::string shown = line.press(press, terminal_.columns());
    terminal_.write(press.key == Key::continued ? "\r\x1b[J" + above + line.draw() : shown);
  }
}

std::string TerminalDialog::ask_menu(std::string_view prompt, const std::vector<std::string>& choices,
                                     std::size_t default_choice) {
  const std::string question = wrap(prompt, 0, terminal_.columns());
  // On a terminal with too few rows the list would scroll, and could not be redrawn in place.
  if (terminal_.rows() <= count_lines(question) + choices.size() + 1)
    return ask(std::string(prompt) + " (" + join(choices, ", ") + ")", choices[default_choice]);
  TerminalMenu menu(choices, default_choice, terminal_.columns(), color_);
  terminal_.write(question + "\n" + menu.draw());
  for (KeyPress press = terminal_.next_key(); press.key != Key::enter; press = terminal_.next_key()) {
    const bool back = press.key == Key::escape || press.key == Key::left;
    if (back || press.text == kAskHelp) {
      terminal_.write(menu.dismiss());
      return std::string(back ? kGoBack : kAskHelp);
    }
    if (press.key == Key::resized) {
      terminal_.write(draw_resized(menu, question, terminal_.columns()));
    } else if (press.key == Key::continued) {
      menu.set_columns(terminal_.columns());
      terminal_.write(question + "\n" + menu.draw());
    } else {
      terminal_.write(menu.press(press));
    }
  }
  terminal_.write(menu.close());
  return choices[menu.chosen()];
}

}  // namespace acc::launcher
