// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"

namespace acc::test {

/// A pseudo-terminal: keys are typed at one end, the dialog runs at the other.
class PseudoTerminal {
 public:
  /// `columns` 0: the terminal does not report its size.
  explicit PseudoTerminal(unsigned short columns = 0) : keyboard_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (keyboard_ < 0 || ::grantpt(keyboard_) != 0 || ::unlockpt(keyboard_) != 0)
      throw std::runtime_error("no pseudo-terminal");
    screen_ = ::open(::ptsname(keyboard_), O_RDWR | O_NOCTTY);
    const winsize size = {.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    if (columns != 0) ::ioctl(screen_, TIOCSWINSZ, &size);
  }
  ~PseudoTerminal() {
    hang_up();
    ::close(screen_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  int fd() const { return screen_; }
  void type(const std::string& keys) const {
    REQUIRE(::write(keyboard_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }
  void hang_up() {
    if (keyboard_ >= 0) ::close(keyboard_);
    keyboard_ = -1;
  }

  // Reads the output until `end`; fails if it does not come.
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

  void make_cooked() const {
    termios now = {};
    REQUIRE(::tcgetattr(screen_, &now) == 0);
    now.c_lflag |= ICANON | ECHO | ISIG | IEXTEN;
    REQUIRE(::tcsetattr(screen_, TCSANOW, &now) == 0);
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

}  // namespace acc::test
