// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/terminal_loan.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"

namespace acc::launcher {
namespace {

// A process in the background may change the terminal while this signal is blocked.
BlockedSignals block_terminal_output() {
  return BlockedSignals(signal_set_of({SIGTTOU}));
}

bool lives(pid_t group) {
  return group > 0 && (::kill(-group, 0) == 0 || errno == EPERM);
}

}  // namespace

TerminalLoan::TerminalLoan(int fd) : fd_(fd), owner_(::tcgetpgrp(fd)) {
  if (owner_ < 0 || ::tcgetattr(fd, &settings_) != 0) {
    throw Error({.what = "standard input is not a terminal", .where = "--attach"});
  }
  if (owner_ != ::getpgrp()) {
    throw Error({.what = "acc runs in the background of the terminal",
                 .where = "--attach",
                 .hint = "bring it to the foreground: fg"});
  }
}

void TerminalLoan::lend(pid_t group) const {
  const BlockedSignals blocked = block_terminal_output();
  ::tcsetpgrp(fd_, group);
}

void TerminalLoan::take_back(pid_t borrower) const {
  const BlockedSignals blocked = block_terminal_output();
  const pid_t now = ::tcgetpgrp(fd_);
  if (now != owner_ && (now == borrower || !lives(now))) ::tcsetpgrp(fd_, owner_);
  if (is_back()) ::tcsetattr(fd_, TCSANOW, &settings_);
}

bool TerminalLoan::is_back() const {
  return ::tcgetpgrp(fd_) == owner_;
}

void leave_terminal_in_background(int fd) {
  const pid_t foreground = ::tcgetpgrp(fd);
  if (foreground < 0 || foreground == ::getpgrp()) return;
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null) ::dup2(null.get(), fd);
}

}  // namespace acc::launcher
