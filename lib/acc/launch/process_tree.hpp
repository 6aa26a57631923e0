// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
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

/// Whether the process can do something about `signal`: it has a handler for it (SigCgt in proc(5)), or all
/// its threads block it, as for sigwait(3) and signalfd(2).
bool handles_signal(pid_t process, int signal, const std::filesystem::path& proc = "/proc");

/// Sends `signal` unless the process has ended or its pid was reused. Returns a pidfd, which becomes readable
/// when the process ends; empty when nothing was sent.
Descriptor signal_descendant(const Descendant& descendant, int signal);

/// The function of the kernel in which the process waits so that it cannot be killed, as for a driver or a
/// disk that does not answer; empty if /proc does not tell. Absent: it does not wait like that.
std::optional<std::string> wait_in_kernel(pid_t pid);

/// Reaps our ended children except those of `is_ours`. Returns true when children are left.
bool reap_orphans(const std::function<bool(pid_t)>& is_ours);

/// The processes below this one at one moment: a shell leaves its children to the program that it executes.
class InheritedProcesses {
 public:
  InheritedProcesses();

  /// Whether the process is one of them, not another that has its pid now.
  bool contains(pid_t pid) const;

 private:
  /// When each started.
  std::map<pid_t, std::chrono::milliseconds> started_ = {};
};

/// Kills all descendants of this process but those that are `spared`, with all below them, and waits for
/// them, unless one waits in the kernel and cannot be killed. Returns whether there were any. Only for a
/// subreaper.
bool kill_descendants(const std::function<bool(pid_t)>& spared = [](pid_t) { return false; });

/// Makes the next child of this process the init process of a new pid namespace: when it ends, the kernel
/// kills all its descendants, daemons too. Without root it enters a user namespace too, with the same user
/// and group. Only for a process that has no threads and will not start any. Throws Error{system} if the
/// system does not allow it.
void enter_pid_namespace();

/// For the init process of a pid namespace: mounts the namespace's own /proc for it and its children, and
/// translates their pids to those outside.
class HostPids {
 public:
  /// Throws Error{system} if the system does not allow it.
  HostPids();

  /// The outside pid of a child of ours; 0 if it has ended and been waited for.
  pid_t of(pid_t child) const;

  /// The outside pid of this process.
  pid_t own() const;

 private:
  Descriptor proc_;
};

}  // namespace acc::launcher
