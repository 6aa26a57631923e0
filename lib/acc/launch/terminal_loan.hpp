// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <termios.h>

namespace acc::launcher {

/// The terminal of this session, which is lent to another process group and comes back as it was. Whoever
/// takes it back need not be the one who lent it: the front does it for an agent that was killed.
class TerminalLoan {
 public:
  /// Remembers which group has the terminal `fd`, and how it is set. Throws Error{usage} when `fd` is no
  /// terminal of this session, or this process is not in its foreground.
  explicit TerminalLoan(int fd);

  /// Lends it; a process may do so for its own group.
  void lend(pid_t group) const;

  /// Gives it back to the group that had it, and restores its settings; unless a living group has taken it
  /// meanwhile that is not `borrower`.
  void take_back(pid_t borrower) const;

  int fd() const { return fd_; }
  pid_t owner() const { return owner_; }
  /// The group that had the terminal has it.
  bool is_back() const;

 private:
  int fd_;
  pid_t owner_ = 0;
  termios settings_ = {};
};

}  // namespace acc::launcher
