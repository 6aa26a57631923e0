// SPDX-License-Identifier: Apache-2.0
#include "acc/base/text.hpp"
#include "acc/cli/terminal_widgets.hpp"
#include "support/catch.hpp"

namespace terminal_widgets_menu_test {

using acc::launcher::Key;
using acc::launcher::TerminalMenu;

namespace {

std::vector<std::string> letters(int count) {
  std::vector<std::string> result;
  for (int i = 0; i < count; ++i) result.emplace_back(1, static_cast<char>('a' + i));
  return result;
}

std::size_t after(TerminalMenu menu, const std::string& characters) {
  for (const char c : characters) menu.press({Key::text, std::string(1, c)});
  return menu.chosen();
}

}  // namespace

TEST_CASE("terminal_menu: arrows and j, k move and stop at the ends", "[cli]") {
  const auto choices = letters(3);
  TerminalMenu menu(choices, 1);
  CHECK_FALSE(menu.press({Key::down, ""}).empty());
  CHECK(menu.chosen() == 2);
  CHECK(menu.press({Key::down, ""}).empty());
  CHECK(menu.chosen() == 2);
  CHECK(after(menu, "kk") == 0);
  CHECK(after(menu, "kkkj") == 1);
}

TEST_CASE("terminal_menu: Home and End go to the ends", "[cli]") {
  const auto choices = letters(5);
  TerminalMenu menu(choices, 2);
  menu.press({Key::end, ""});
  CHECK(menu.chosen() == 4);
  menu.press({Key::home, ""});
  CHECK(menu.chosen() == 0);
}

TEST_CASE("terminal_menu: digits select an index of one or two digits", "[cli]") {
  const auto choices = letters(11);
  const TerminalMenu menu(choices, 3);
  CHECK(after(menu, "5") == 5);
  CHECK(after(menu, "10") == 10);
  CHECK(after(menu, "19") == 9);
  CHECK(after(menu, "1j0") == 0);
  const auto few = letters(3);
  CHECK(after(TerminalMenu(few, 1), "9") == 1);
  CHECK(after(TerminalMenu(few, 1), "02") == 2);
}

TEST_CASE("terminal_menu: letters go to the choice that begins with them", "[cli]") {
  const std::vector<std::string> choices = {"eager", "inductor", "ipex", "kernel", "JAX"};
  const TerminalMenu menu(choices, 0);
  CHECK(after(menu, "i") == 1);
  CHECK(after(menu, "ip") == 2);
  CHECK(after(menu, "ipe") == 2);
  CHECK(after(menu, "ie") == 0);
  CHECK(after(menu, "jk") == 0);
  CHECK(after(menu, "x") == 0);
  CHECK(after(menu, "Ind") == 1);
  // j and k move if no choice matches them as letters.
  CHECK(after(menu, "ij") == 2);
  CHECK(after(menu, "ijk") == 1);
}

TEST_CASE("terminal_menu: can be removed completely", "[cli]") {
  const auto choices = letters(3);
  CHECK(TerminalMenu(choices, 0).dismiss() == "\x1b[4A\r\x1b[J\x1b[?25h");
}

TEST_CASE("terminal_menu: other keys change nothing", "[cli]") {
  const auto choices = letters(3);
  TerminalMenu menu(choices, 1);
  for (const char* text : {" ", "x", "Z", "\xc3\xa9"}) CHECK(menu.press({Key::text, text}).empty());
  CHECK(menu.press({Key::unknown, ""}).empty());
  CHECK(menu.press({Key::backspace, ""}).empty());
}

TEST_CASE("terminal_menu: no line is as wide as the terminal", "[cli]") {
  const std::vector<std::string> choices = {"short", "a choice of thirty characters.", "\xc3\xa9t\xc3\xa9"};
  for (const std::size_t columns : {200, 80, 73, 72, 40, 36, 35, 20, 11, 10, 5}) {
    const TerminalMenu menu(choices, 0, columns);
    INFO(columns);
    CHECK(menu.width() < columns);
    std::string drawn = menu.draw();
    for (const std::string code : {"\x1b[?25l", "\x1b[32m", "\x1b[0m"}) {
      if (drawn.find(code) != std::string::npos) drawn.erase(drawn.find(code), code.size());
    }
    const std::vector<std::string> lines = acc::split(drawn, '\n');
    CHECK(lines.size() == choices.size() + 2);
    std::size_t widest = 0;
    for (const std::string& line : lines) widest = std::max(widest, acc::count_characters(line));
    CHECK(widest == menu.width());
  }
}

TEST_CASE("terminal_menu: only the two lines that change are drawn again", "[cli]") {
  const auto choices = letters(3);
  TerminalMenu menu(choices, 0);
  const std::string green_a = " \u2794  \x1b[32ma\x1b[0m";
  const std::string green_b = " \u2794  \x1b[32mb\x1b[0m";
  const std::string drawn = menu.draw();
  CHECK(drawn.ends_with("\x1b[?25l" + green_a + "\n    b\n    c\n"));
  CHECK(menu.press({Key::down, ""}) ==
        "\x1b[3A\r\x1b[K    a\r\x1b[3B\x1b[2A\r\x1b[K" + green_b + "\r\x1b[2B");
  CHECK(menu.close() == "\x1b[4A\r\x1b[J\x1b[32mb\x1b[0m\n\x1b[?25h");
}

TEST_CASE("terminal_menu: without color it marks the choice by its arrow alone", "[cli]") {
  const auto choices = letters(2);
  const TerminalMenu menu(choices, 1, 80, false);
  CHECK(menu.draw().find("\u2794  b\n") != std::string::npos);
  CHECK((menu.draw() + menu.close()).find("\x1b[32m") == std::string::npos);
}

}  // namespace terminal_widgets_menu_test
