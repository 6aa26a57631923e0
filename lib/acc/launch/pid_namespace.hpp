// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "acc/base/descriptor.hpp"

namespace acc::launcher {

/// The next child of this process is the first in a pid namespace: when it ends, however it does, the kernel
/// kills everything below it, what has made itself a daemon too. Who is not root gets a user namespace around
/// it, in which its user and group are what they were. For a process without threads, which starts none after
/// this. Throws Error{system} where the system does not allow it.
void enter_pid_namespace();

/// For the first process in a pid namespace: from now on /proc is the namespace's own for it and for its
/// children, and this tells the numbers that everybody outside uses.
class OutsideNumbers {
 public:
  /// Throws Error{system} where the system does not allow it.
  OutsideNumbers();

  /// Of the process that a pidfd of ours stands for; 0: it has ended.
  pid_t of(int pidfd) const;

  /// Of this process.
  pid_t own() const;

 private:
  Descriptor proc_;
};

}  // namespace acc::launcher
