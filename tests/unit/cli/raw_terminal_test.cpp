// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/raw_terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>

#include "acc/cli/dialog.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/pseudo_terminal.hpp"

namespace raw_terminal_test {

using acc::launcher::Key;
using acc::launcher::RawTerminal;
using acc::test::PseudoTerminal;

TEST_CASE("raw_terminal: Ctrl-C ends it, and the terminal is as it was", "[cli]") {
  const PseudoTerminal terminal;
  REQUIRE(terminal.is_cooked());
  bool interrupted = false;
  try {
    const RawTerminal raw(terminal.fd(), terminal.fd());
    CHECK_FALSE(terminal.is_cooked());
    terminal.type("\x03");
    raw.next_key();
  } catch (const acc::launcher::Interrupted&) {
    interrupted = true;
  }
  CHECK(interrupted);
  CHECK(terminal.is_cooked());
  terminal.shown_until("^C\r\n\x1b[?25h");
}

TEST_CASE("raw_terminal: a lost terminal ends the input", "[cli]") {
  PseudoTerminal terminal;
  const RawTerminal raw(terminal.fd(), terminal.fd());
  terminal.hang_up();
  CHECK(acc::test::error_of([&] { raw.next_key(); }) == "the input ended");
}

TEST_CASE("raw_terminal: a signal that the caller ignores stays ignored", "[cli]") {
  const PseudoTerminal terminal;
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const RawTerminal raw(terminal.fd(), terminal.fd());
    std::raise(SIGHUP);
    CHECK_FALSE(terminal.is_cooked());
  }
  CHECK(std::signal(SIGHUP, before) == SIG_IGN);
}

TEST_CASE("raw_terminal: other files than terminals are refused", "[cli]") {
  std::array<int, 2> ends = {};
  REQUIRE(::pipe(ends.data()) == 0);
  CHECK(acc::test::error_of([&] {
          RawTerminal(ends[0], ends[1]);
        }).starts_with("the input is not a terminal: "));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("raw_terminal: a new size is reported once, before the keys that follow", "[cli]") {
  const PseudoTerminal terminal;
  const RawTerminal raw(terminal.fd(), terminal.fd());
  CHECK(raw.columns() == 80);
  CHECK(raw.rows() == 24);
  const winsize size = {.ws_row = 10, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
  REQUIRE(::ioctl(terminal.fd(), TIOCSWINSZ, &size) == 0);
  terminal.type("a");
  // The terminal belongs to no session, so the kernel sends no signal.
  ::kill(::getpid(), SIGWINCH);
  CHECK(raw.next_key().key == Key::resized);
  CHECK(raw.next_key().text == "a");
  CHECK(raw.columns() == 40);
  CHECK(raw.rows() == 10);
}

TEST_CASE("raw_terminal: when the program goes on after a stop the terminal is raw again", "[cli]") {
  const PseudoTerminal terminal;
  const RawTerminal raw(terminal.fd(), terminal.fd());
  terminal.make_cooked();
  ::kill(::getpid(), SIGCONT);
  CHECK(raw.next_key().key == Key::continued);
  CHECK_FALSE(terminal.is_cooked());
}

TEST_CASE("raw_terminal: a descriptor that can be read ends the wait, and keys come first", "[cli]") {
  const PseudoTerminal terminal;
  const RawTerminal raw(terminal.fd(), terminal.fd());
  std::array<int, 2> ends = {};
  REQUIRE(::pipe(ends.data()) == 0);
  REQUIRE(::write(ends[1], "x", 1) == 1);
  CHECK_FALSE(raw.next_key_or(ends[0]));
  terminal.type("a");
  const auto press = raw.next_key_or(ends[0]);
  CHECK((press && press->text == "a"));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("raw_terminal: what was on the screen comes back, also after a stop", "[cli]") {
  const PseudoTerminal terminal;
  {
    const RawTerminal raw(terminal.fd(), terminal.fd(), RawTerminal::Area::whole_screen);
    terminal.shown_until("\x1b[?1049h\x1b[?25l");
    ::kill(::getpid(), SIGCONT);
    CHECK(raw.next_key().key == Key::continued);
    terminal.shown_until("\x1b[?1049h\x1b[?25l");
  }
  terminal.shown_until("\x1b[?1049l\x1b[?25h");
}

TEST_CASE("raw_terminal: restores the signal dispositions", "[cli]") {
  struct sigaction before = {};
  ::sigaction(SIGTSTP, nullptr, &before);
  {
    const PseudoTerminal terminal;
    const RawTerminal raw(terminal.fd(), terminal.fd());
  }
  struct sigaction after = {};
  ::sigaction(SIGTSTP, nullptr, &after);
  CHECK(after.sa_handler == before.sa_handler);
  sigset_t mask = {};
  ::sigprocmask(SIG_BLOCK, nullptr, &mask);
  CHECK(::sigismember(&mask, SIGTSTP) == 0);
}

}  // namespace raw_terminal_test
