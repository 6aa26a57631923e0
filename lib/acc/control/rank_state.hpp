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
#include <vector>

#include "acc/base/nvml.hpp"
#include "acc/control/job_view.hpp"
#include "acc/control/process_table.hpp"

namespace acc::launcher {

/// A rank's use of one GPU.
struct RankGpu {
  int index = 0;
  std::uint64_t memory_bytes = 0;
  /// Of the whole GPU, in percent; absent when the driver does not tell.
  std::optional<int> use = {};
  /// That the whole GPU draws; absent likewise.
  std::optional<double> watts = {};
};

/// The resource use of a rank and its descendants.
struct RankUsage {
  /// In words: `running`, `sleeping`, `waiting for a device`, `stopped`, `ended`.
  std::string state = {};
  std::chrono::milliseconds uptime = {};
  /// Of one core; nullopt in the first sample.
  std::optional<double> cpu_percent = {};
  /// Since they were started, with their children that have ended.
  std::chrono::milliseconds cpu_time = {};
  std::uint64_t memory_bytes = 0;
  int processes = 0;
  int threads = 0;
  std::vector<RankGpu> gpus = {};
};

/// From one sample of CPU use to the next. Long compared with the kernel's clock tick of 10 ms, short for a
/// user.
inline constexpr auto kSampleInterval = std::chrono::milliseconds(200);

/// The processes of the machine at two moments, for their use of the CPU in between.
struct ProcessSample {
  ProcessTable previous = {};
  ProcessTable current = {};
  std::chrono::milliseconds interval = {};
};

/// Takes kSampleInterval.
ProcessSample sample_processes();

/// The name of a process state letter of proc(5).
std::string state_in_words(char state);

/// CPU use of `root` and its descendants since `previous`, in percent of one core; absent if it was not in
/// `previous`.
std::optional<double> cpu_percent(pid_t root, const ProcessTable& previous, const ProcessTable& current,
                                  std::chrono::milliseconds interval);

/// What was counted of processes. A job may say that thousands of its ranks are one process, and the kernel
/// takes long for the memory of each.
struct CountedProcesses {
  /// Those of the job, which count for one of its ranks each.
  std::set<pid_t> of_job = {};
  /// The memory of processes of all jobs, which is read once.
  std::map<pid_t, std::uint64_t> memory_bytes = {};
};

/// The rank's resource use in `current`, without the processes that were `counted` for other ranks; its CPU
/// use is since `previous`, `interval` ago.
RankUsage rank_usage(const RankView& rank, const ProcessTable& previous, const ProcessTable& current,
                     std::chrono::milliseconds interval, const std::vector<GpuProcess>& gpu_processes,
                     CountedProcesses& counted);

/// What a thread is doing, from /proc.
struct ThreadWait {
  pid_t id = 0;
  std::string name = {};
  /// As ProcessStat::state.
  char state = '?';
  /// The system call it is in; empty if in none, or if /proc does not permit it.
  std::string call = {};
  /// The kernel function it waits in (wchan); empty likewise.
  std::string kernel = {};
};

/// The threads of a process, main thread first; empty when it has ended.
std::vector<ThreadWait> threads_of(pid_t pid, const std::filesystem::path& proc = "/proc");

/// `sleeping in futex (futex_wait_queue)`, `running`, `stopped`.
std::string to_string(const ThreadWait& thread);

/// The name of a system call that programs wait in, else its number.
std::string name_of_call(long number);

/// What a rank is doing, as text that is equal for ranks that do the same.
struct RankState {
  int rank = 0;
  /// Of its main thread: `sleeping in futex (futex_wait_queue)`.
  std::string activity = {};
  int processes = 0;
  int threads = 0;
  /// Of one core.
  std::optional<double> cpu_percent = {};
};

/// As the job's agent sees it; CPU use is since `previous`, `interval` ago.
RankState state_of(const RankView& rank, const ProcessTable& previous, const ProcessTable& current,
                   std::chrono::milliseconds interval);

/// `sleeping in futex (futex_wait_queue), 3% CPU`.
std::string to_string(const RankState& state);

struct Stragglers {
  std::vector<int> ranks = {};
  /// `rank 3 differs: stopped, while the other 7 are running`.
  std::string text = {};
};

/// The ranks that differ from the majority: they use at most a fifth of the CPU that the others use, or do
/// something else although not all ranks are working. Empty when there is no majority.
Stragglers find_stragglers(const std::vector<RankState>& ranks);

/// Where a rank stands, and whether it waits for others there.
struct RankStanding {
  bool waits = false;
  /// `in all_reduce at train.py:4`
  std::string position = {};

  auto operator<=>(const RankStanding&) const = default;
};

/// Says in one line where the ranks stand, those first that the others wait for: `rank 1 is in data after
/// step 812; ranks 0, 2, 3 wait in all_reduce`. `ended` has the ranks that have ended, and how. Empty if no
/// rank stands anywhere.
Stragglers find_stragglers(const std::map<int, RankStanding>& ranks, const std::map<int, std::string>& ended);

/// What a rank says of itself.
RankStanding standing_of(const ProgressView& progress);

/// `in data for 9s, after step 812`
std::string to_string(const ProgressView& progress);

}  // namespace acc::launcher
