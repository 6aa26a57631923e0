// SPDX-License-Identifier: Apache-2.0
#include "acc/config/line_dialog.hpp"

#include "acc/base/error.hpp"

namespace acc::launcher {

std::string LineDialog::read_line() {
  out_.flush();
  std::string line;
  const bool got_line = static_cast<bool>(std::getline(in_, line));
  out_ << '\n';
  if (!got_line) throw Error({.what = "the input ended"});
  return line;
}

void LineDialog::say(std::string_view text) {
  out_ << text << '\n';
}

std::string LineDialog::ask(std::string_view prompt, std::string_view otherwise) {
  out_ << prompt;
  if (!otherwise.empty()) out_ << " [" << otherwise << ']';
  out_ << ' ';
  return read_line();
}

std::string LineDialog::ask_menu(std::string_view prompt, const std::vector<std::string>& choices,
                                 std::size_t otherwise) {
  out_ << prompt << '\n';
  for (std::size_t i = 0; i < choices.size(); ++i) out_ << "  " << i << ") " << choices[i] << '\n';
  out_ << "Number or text [" << choices[otherwise] << "] ";
  return read_line();
}

}  // namespace acc::launcher
