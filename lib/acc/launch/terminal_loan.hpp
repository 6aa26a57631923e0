// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <termios.h>

namespace acc::launcher {

/// Makes another process group the foreground process group of the terminal, and restores group and settings
/// afterwards. Another process may restore them: the supervisor does it for an agent that was killed.
class TerminalLoan {
 public:
  /// Saves the foreground process group and the settings of the terminal `fd`. Throws Error{usage} when `fd`
  /// is not the terminal of this session or this process is in the background.
  explicit TerminalLoan(int fd);

  /// Makes `group` the foreground process group.
  void lend(pid_t group) const;

  /// Restores the foreground process group and the settings, unless another running group than `borrower` has
  /// taken the terminal meanwhile.
  void take_back(pid_t borrower) const;

  int fd() const { return fd_; }
  pid_t owner() const { return owner_; }
  /// Whether the saved group is the foreground process group.
  bool is_back() const;

 private:
  int fd_;
  pid_t owner_ = 0;
  termios settings_ = {};
};

/// Gives a process in the background of the terminal `fd` /dev/null in its place. In a shell's background the
/// kernel would stop who reads the terminal; it does not stop workers, which have sessions of their own, and
/// they would take what is typed into the shell.
void leave_terminal_in_background(int fd);

}  // namespace acc::launcher
