// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>

namespace acc::launcher {

/// The process exited with a code.
struct Exited {
  int code = 0;
  bool operator==(const Exited&) const = default;
};

/// The process was terminated by a signal.
struct Signaled {
  int signal = 0;
  bool core_dumped = false;
  bool operator==(const Signaled&) const = default;
};

using ExitStatus = std::variant<Exited, Signaled>;

/// The wait status of waitpid(2) as a value.
ExitStatus to_exit_status(int wait_status);

bool succeeded(const ExitStatus& status);

/// The exit code as a shell gives it: the process's own, or 128 + signal.
int shell_code(const ExitStatus& status);

/// `SIGTERM`, or `signal 40` for a signal without a name.
std::string signal_name(int signal);

/// `exit code 5`, or `signal 11 (SIGSEGV, core dumped)`.
std::string to_string(const ExitStatus& status);

/// The cgroup files of the kernel; tests pass others.
struct CgroupPaths {
  std::filesystem::path membership = "/proc/self/cgroup";
  std::filesystem::path root = "/sys/fs/cgroup";
};

/// The number of processes of our cgroup that the OOM killer has killed, from cgroup v2's memory.events or
/// v1's memory.oom_control; nullopt when neither is available.
std::optional<std::uint64_t> count_oom_kills(const CgroupPaths& paths = {});

/// The memory limit of a cgroup, and the most that it has used.
struct CgroupMemory {
  std::uint64_t limit = 0;
  std::optional<std::uint64_t> peak = {};
  bool operator==(const CgroupMemory&) const = default;
};

/// Of our cgroup or the one above it with the lowest limit, in bytes, from cgroup v2 or v1. Absent: there is
/// no limit.
std::optional<CgroupMemory> cgroup_memory(const CgroupPaths& paths = {});

/// Detects OOM kills since its construction.
class OomWatch {
 public:
  explicit OomWatch(CgroupPaths paths = {}) : paths_(std::move(paths)), before_(count_oom_kills(paths_)) {}

  /// Whether the OOM killer has killed a process of our cgroup since construction.
  bool has_killed() const;

  std::optional<CgroupMemory> memory() const { return cgroup_memory(paths_); }

 private:
  CgroupPaths paths_;
  std::optional<std::uint64_t> before_;
};

}  // namespace acc::launcher
