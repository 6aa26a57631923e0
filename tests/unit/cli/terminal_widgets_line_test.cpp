// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/terminal_widgets.hpp"
#include "support/catch.hpp"

namespace terminal_widgets_line_test {

using acc::launcher::Key;
using acc::launcher::TerminalLine;

namespace {

// The output of all keys.
std::string type(TerminalLine& line, const std::string& characters, std::size_t columns = 80) {
  std::string written;
  for (const char c : characters) written += line.press({Key::text, std::string(1, c)}, columns);
  return written;
}

}  // namespace

TEST_CASE("terminal_line: characters are shown, and erased one by one", "[cli]") {
  TerminalLine line("Name? ");
  CHECK(type(line, "ab") == "ab");
  CHECK(line.press({Key::text, "\xc3\xa9"}, 80) == "\xc3\xa9");
  CHECK(line.press({Key::backspace, ""}, 80) == "\b \b");
  CHECK(line.text() == "ab");
  CHECK(line.draw() == "Name? ab");
}

TEST_CASE("terminal_line: words and lines are erased at once", "[cli]") {
  TerminalLine line("");
  type(line, "two words ");
  CHECK(line.press({Key::erase_word, ""}, 80) == "\b \b\b \b\b \b\b \b\b \b\b \b");
  CHECK(line.text() == "two ");
  CHECK(line.press({Key::erase_line, ""}, 80) == "\b \b\b \b\b \b\b \b");
  CHECK(line.text().empty());
  CHECK(line.press({Key::backspace, ""}, 80).empty());
}

TEST_CASE("terminal_line: input that wraps is redrawn from the first row", "[cli]") {
  TerminalLine line("P? ");
  type(line, "abcdefgh", 10);
  CHECK(line.press({Key::backspace, ""}, 10) == "\x1b[1A\r\x1b[JP? abcdefg");
  // Ten characters fill the row, and the terminal has not gone to the next one yet.
  CHECK(line.press({Key::backspace, ""}, 10) == "\r\x1b[JP? abcdef");
  CHECK(line.press({Key::backspace, ""}, 10) == "\b \b");
}

TEST_CASE("terminal_line: hidden input is never shown", "[cli]") {
  TerminalLine line("Key? ", true);
  CHECK(type(line, "secret").empty());
  CHECK(line.press({Key::backspace, ""}, 80).empty());
  CHECK(line.text() == "secre");
  CHECK(line.draw() == "Key? ");
}

}  // namespace terminal_widgets_line_test
