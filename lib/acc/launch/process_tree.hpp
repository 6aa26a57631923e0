// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <vector>

#include "acc/base/files.hpp"

namespace acc::launcher {

struct Descendant {
  pid_t pid = 0;
  pid_t parent = 0;
  bool operator==(const Descendant&) const = default;
};

/// All descendants of `ancestor`, parents before their children. Complete when `ancestor` is a subreaper,
/// which adopts orphans. Reads /proc of every process of the machine.
std::vector<Descendant> descendants_of(pid_t ancestor, const std::filesystem::path& proc = "/proc");

/// Sends `signal` unless the process has ended or its pid was reused. Returns a pidfd, which becomes readable
/// when the process ends; empty when nothing was sent.
Descriptor signal_descendant(const Descendant& descendant, int signal);

/// Reaps our ended children except those of `is_ours`. Returns true when children are left.
bool reap_orphans(const std::function<bool(pid_t)>& is_ours);

/// Kills all descendants of this process and waits for them. Returns whether there were any. For a subreaper
/// without other children to wait for.
bool kill_descendants();

/// The next child of this process is the first in a pid namespace: when it ends, however it does, the kernel
/// kills everything below it, what has made itself a daemon too. Who is not root gets a user namespace around
/// it, in which its user and group are what they were. For a process without threads, which starts none after
/// this. Throws Error{system} where the system does not allow it.
void enter_pid_namespace();

/// For the first process in a pid namespace: from now on /proc is the namespace's own for it and for its
/// children, and this tells the numbers that everybody outside uses.
class HostPids {
 public:
  /// Throws Error{system} where the system does not allow it.
  HostPids();

  /// Of the process that a pidfd of ours stands for; 0: it has ended.
  pid_t of(int pidfd) const;

  /// Of this process.
  pid_t own() const;

 private:
  Descriptor proc_;
};

}  // namespace acc::launcher
