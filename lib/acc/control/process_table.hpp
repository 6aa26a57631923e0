// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// Fields of /proc/PID/stat.
struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  /// The kernel's letter: R running, S sleeping, D waiting for a device, T stopped, t traced, Z ended.
  char state = '?';
  std::string name = {};
  int threads = 0;
  /// Of the process and of its children that have ended and were waited for.
  std::chrono::milliseconds cpu_time = {};
  /// Of those children alone.
  std::chrono::milliseconds cpu_time_of_children = {};
  /// Since the machine started.
  std::chrono::milliseconds started = {};
  std::uint64_t resident_bytes = 0;
};

/// Absent if the text is not such a line.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

/// Absent when the process has ended.
std::optional<ProcessStat> read_process(pid_t pid, const std::filesystem::path& proc = "/proc");

/// All processes of this machine at one moment.
class ProcessTable {
 public:
  static ProcessTable read(const std::filesystem::path& proc = "/proc");

  void add(ProcessStat process);
  /// Null when it is not there. What is returned lives as long as the table.
  const ProcessStat* find(pid_t pid) const&;
  const ProcessStat* find(pid_t pid) const&& = delete;
  /// `root` and everything below it, parents before their children; empty when `root` is not there. `counted`
  /// ones are left out with what is below them, and the others are added to them.
  std::vector<const ProcessStat*> tree(pid_t root, std::set<pid_t>* counted = nullptr) const&;
  std::vector<const ProcessStat*> tree(pid_t root, std::set<pid_t>* counted = nullptr) const&& = delete;

 private:
  std::map<pid_t, ProcessStat> processes_ = {};
  std::multimap<pid_t, pid_t> children_ = {};
};

/// The same as `cpu_time`, counted in nanoseconds while the process lives: /proc has ticks of 10 ms.
std::chrono::nanoseconds exact_cpu_time(const ProcessStat& process);

/// Proportional set size (PSS), or the resident size if the kernel does not tell the PSS.
std::uint64_t memory_of(const ProcessStat& process, const std::filesystem::path& proc = "/proc");

/// Time since the machine started, as ProcessStat::started counts it.
std::chrono::milliseconds time_since_boot();

}  // namespace acc::launcher
