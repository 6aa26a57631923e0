// SPDX-License-Identifier: Apache-2.0
#include "acc/config/terminal_dialog.hpp"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::TerminalDialog;

namespace {

// A pseudo-terminal: keys are typed at one end, the dialog runs at the other.
class Terminal {
 public:
  Terminal() : keyboard_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (keyboard_ < 0 || ::grantpt(keyboard_) != 0 || ::unlockpt(keyboard_) != 0)
      throw std::runtime_error("no pseudo-terminal");
    screen_ = ::open(::ptsname(keyboard_), O_RDWR | O_NOCTTY);
  }
  ~Terminal() {
    hang_up();
    ::close(screen_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  int fd() const { return screen_; }
  void type(const std::string& keys) const {
    REQUIRE(::write(keyboard_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }
  void hang_up() {
    if (keyboard_ >= 0) ::close(keyboard_);
    keyboard_ = -1;
  }

  // All that was shown until `end`, which must come.
  std::string shown_until(const std::string& end) const {
    std::string text;
    std::array<char, 4096> buffer = {};
    while (text.find(end) == std::string::npos) {
      pollfd screen = {.fd = keyboard_, .events = POLLIN, .revents = 0};
      constexpr int kGiveUpAfter = 10'000;
      REQUIRE(::poll(&screen, 1, kGiveUpAfter) == 1);
      const ssize_t n = ::read(keyboard_, buffer.data(), buffer.size());
      REQUIRE(n > 0);
      text.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return text;
  }

  bool is_cooked() const {
    termios now = {};
    REQUIRE(::tcgetattr(screen_, &now) == 0);
    constexpr tcflag_t kCooked = ICANON | ECHO | ISIG | IEXTEN;
    return (now.c_lflag & kCooked) == kCooked;
  }

 private:
  int keyboard_;
  int screen_ = -1;
};

}  // namespace

TEST_CASE("terminal_dialog: keys choose from a menu", "[config]") {
  const Terminal terminal;
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

TEST_CASE("terminal_dialog: keys that were typed early wait for their question", "[config]") {
  const Terminal terminal;
  TerminalDialog dialog(terminal.fd(), terminal.fd());
  terminal.type("j\r10.0.0.1\r\r");
  CHECK(dialog.ask_menu("Which?", {"a", "b"}, 0) == "b");
  CHECK(dialog.ask("Address?", "") == "10.0.0.1");
  CHECK(dialog.ask("Port?", "29500").empty());
}

TEST_CASE("terminal_dialog: a line can be corrected", "[config]") {
  const Terminal terminal;
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

TEST_CASE("terminal_dialog: Esc goes back, and so does the left arrow where nothing is typed", "[config]") {
  const Terminal terminal;
  TerminalDialog dialog(terminal.fd(), terminal.fd());
  terminal.type("\x1b[D");
  CHECK(dialog.ask("?", "") == acc::kGoBack);
  terminal.type("\x1b[D");
  CHECK(dialog.ask_menu("?", {"a", "b"}, 0) == acc::kGoBack);
  terminal.type("?");
  CHECK(dialog.ask_menu("?", {"a", "b"}, 0) == acc::kAskHelp);
  terminal.type("typed\x1b");
  CHECK(dialog.ask("?", "") == acc::kGoBack);
}

TEST_CASE("terminal_dialog: what is typed is shown once, and menus leave their answer", "[config]") {
  const Terminal terminal;
  {
    TerminalDialog dialog(terminal.fd(), terminal.fd());
    terminal.type("ab\r\r");
    dialog.ask("Name?", "x");
    dialog.ask_menu("Which?", {"p", "q"}, 1);
    dialog.say("done");
  }
  const std::string shown = terminal.shown_until("done\r\n\x1b[?25h");
  CHECK(shown.starts_with("Name? [x] ab\r\nWhich?\r\n("));
  CHECK(shown.find("\x1b[32mq\x1b[0m\r\n\x1b[?25hdone\r\n") != std::string::npos);
}

TEST_CASE("terminal_dialog: Ctrl-C ends it, and the terminal is as it was", "[config]") {
  const Terminal terminal;
  REQUIRE(terminal.is_cooked());
  bool interrupted = false;
  try {
    TerminalDialog dialog(terminal.fd(), terminal.fd());
    CHECK_FALSE(terminal.is_cooked());
    terminal.type("j\x03");
    dialog.ask_menu("Which?", {"a", "b"}, 0);
  } catch (const acc::Interrupted&) {
    interrupted = true;
  }
  CHECK(interrupted);
  CHECK(terminal.is_cooked());
  CHECK(terminal.shown_until("\x1b[?25h").find("\x1b[?25l") != std::string::npos);
}

TEST_CASE("terminal_dialog: Ctrl-D on an empty line and a lost terminal end the input", "[config]") {
  Terminal terminal;
  TerminalDialog dialog(terminal.fd(), terminal.fd());
  terminal.type("\x04");
  CHECK(acc::test::error_of([&] { dialog.ask("?", ""); }) == "the input ended");
  terminal.hang_up();
  CHECK(acc::test::error_of([&] { dialog.ask_menu("?", {"a"}, 0); }) == "the input ended");
}

TEST_CASE("terminal_dialog: what is no terminal is refused", "[config]") {
  std::array<int, 2> ends = {};
  REQUIRE(::pipe(ends.data()) == 0);
  CHECK(acc::test::error_of([&] {
          TerminalDialog dialog(ends[0], ends[1]);
        }).starts_with("the input is not a terminal: "));
  ::close(ends[0]);
  ::close(ends[1]);
}
