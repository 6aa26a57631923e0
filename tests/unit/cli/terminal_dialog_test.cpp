// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/terminal_dialog.hpp"

#include <unistd.h>

#include <csignal>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/pseudo_terminal.hpp"

namespace terminal_dialog_test {

using acc::launcher::TerminalDialog;
using acc::test::PseudoTerminal;

TEST_CASE("terminal_dialog: keys choose from a menu", "[cli]") {
  const PseudoTerminal terminal;
  TerminalDialog dialog(terminal.fd(), terminal.fd());
  const std::vector<std::string> choices = {"first", "second", "third"};
  terminal.type("\x1b[B\r");
  CHECK(dialog.ask_menu("Which?", choices, 0) == "second");
  terminal.type("kk\r");
  CHECK(dialog.ask_menu("Which?", choices, 2) == "first");
  terminal.type("\x1b[F\n");
  CHECK(dialog.ask_menu("Which?", choices, 0) == "third");
  terminal.type("\r");
  CHECK(dialog.ask_menu("Which?", choices, 1) == "second");
}

TEST_CASE("terminal_dialog: keys pressed ahead are kept for their question", "[cli]") {
  const PseudoTerminal terminal;
  TerminalDialog dialog(terminal.fd(), terminal.fd());
  terminal.type("j\r10.0.0.1\r\r");
  CHECK(dialog.ask_menu("Which?", {"a", "b"}, 0) == "b");
  CHECK(dialog.ask("Address?", "") == "10.0.0.1");
  CHECK(dialog.ask("Port?", "29500").empty());
}

TEST_CASE("terminal_dialog: a line can be corrected", "[cli]") {
  const PseudoTerminal terminal;
  TerminalDialog dialog(terminal.fd(), terminal.fd());
  terminal.type(
      "ax\x7f\xc3\xa9\x7f"
      "b\r");
  CHECK(dialog.ask("?", "") == "ab");
  terminal.type("wrong\x15right\r");
  CHECK(dialog.ask("?", "") == "right");
  terminal.type(
      "two words\x17"
      "more\r");
  CHECK(dialog.ask("?", "") == "two more");
  terminal.type(
      "\x7f\x7f"
      "a\x1b[D\x04"
      "b\r");
  CHECK(dialog.ask("?", "") == "ab");
}

TEST_CASE("terminal_dialog: Esc goes back, and so does the left arrow in an empty line", "[cli]") {
  const PseudoTerminal terminal;
  TerminalDialog dialog(terminal.fd(), terminal.fd());
  terminal.type("\x1b[D");
  CHECK(dialog.ask("?", "") == acc::launcher::kGoBack);
  terminal.type("\x1b[D");
  CHECK(dialog.ask_menu("?", {"a", "b"}, 0) == acc::launcher::kGoBack);
  terminal.type("?");
  CHECK(dialog.ask_menu("?", {"a", "b"}, 0) == acc::launcher::kAskHelp);
  terminal.type("typed\x1b");
  CHECK(dialog.ask("?", "") == acc::launcher::kGoBack);
}

TEST_CASE("terminal_dialog: input is shown once, and menus leave their answer", "[cli]") {
  const PseudoTerminal terminal;
  {
    TerminalDialog dialog(terminal.fd(), terminal.fd());
    terminal.type("ab\r\r");
    dialog.ask("Name?", "x");
    dialog.ask_menu("Which?", {"p", "q"}, 1);
    dialog.show("done");
  }
  const std::string shown = terminal.shown_until("done\r\n\x1b[?25h");
  CHECK(shown.starts_with("Name? [x] ab\r\nWhich?\r\n("));
  CHECK(shown.find("\x1b[32mq\x1b[0m\r\n\x1b[?25hdone\r\n") != std::string::npos);
}

TEST_CASE("terminal_dialog: Ctrl-C ends it, and the terminal is as it was", "[cli]") {
  const PseudoTerminal terminal;
  REQUIRE(terminal.is_cooked());
  bool interrupted = false;
  try {
    TerminalDialog dialog(terminal.fd(), terminal.fd());
    CHECK_FALSE(terminal.is_cooked());
    terminal.type("j\x03");
    dialog.ask_menu("Which?", {"a", "b"}, 0);
  } catch (const acc::launcher::Interrupted&) {
    interrupted = true;
  }
  CHECK(interrupted);
  CHECK(terminal.is_cooked());
  CHECK(terminal.shown_until("\x1b[?25h").find("\x1b[?25l") != std::string::npos);
}

TEST_CASE("terminal_dialog: Ctrl-D on an empty line and a lost terminal end the input", "[cli]") {
  PseudoTerminal terminal;
  TerminalDialog dialog(terminal.fd(), terminal.fd());
  terminal.type("\x04");
  CHECK(acc::test::error_of([&] { dialog.ask("?", ""); }) == "the input ended");
  terminal.hang_up();
  CHECK(acc::test::error_of([&] { dialog.ask_menu("?", {"a"}, 0); }) == "the input ended");
}

TEST_CASE("terminal_dialog: a secret is not shown, and may be left out", "[cli]") {
  const PseudoTerminal terminal;
  TerminalDialog dialog(terminal.fd(), terminal.fd());
  terminal.type("abc\r\r");
  CHECK(dialog.ask_secret("Key?") == "abc");
  CHECK(dialog.ask_secret("Key?").empty());
  CHECK(terminal.shown_until("Key? \r\nKey? \r\n") == "Key? \r\nKey? \r\n");
}

TEST_CASE("terminal_dialog: questions break at words, and long choices are cut", "[cli]") {
  const PseudoTerminal terminal(30);
  TerminalDialog dialog(terminal.fd(), terminal.fd());
  terminal.type("x\r");
  CHECK(dialog.ask("What is it that you want to know?", "y") == "x");
  CHECK(terminal.shown_until("x\r\n") == "What is it that you want to\r\nknow? [y] x\r\n");
  terminal.type("\r");
  CHECK(dialog.ask_menu("Which?", {"one", "a choice longer than the terminal is wide"}, 1).size() == 41);
  const std::string shown = terminal.shown_until("\x1b[?25h");
  CHECK(
      shown.starts_with("Which?\r\n(?: help)\r\n\x1b[?25l    one\r\n \u2794  \x1b[32ma choice longer than the"
                        "\u2026\x1b[0m\r\n"));
}

TEST_CASE("terminal_dialog: after a stop the question and the input are shown again", "[cli]") {
  const PseudoTerminal terminal;
  TerminalDialog dialog(terminal.fd(), terminal.fd());
  ::kill(::getpid(), SIGCONT);
  terminal.type("ab\r");
  CHECK(dialog.ask("Name?", "") == "ab");
  CHECK(terminal.shown_until("b\r\n").find("Name? ", 1) != std::string::npos);
}

}  // namespace terminal_dialog_test
