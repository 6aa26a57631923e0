// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/nvml.hpp"
#include "acc/control/job_view.hpp"
#include "acc/control/process_table.hpp"

namespace acc::launcher {

/// What one GPU does for one rank.
struct RankGpu {
  int index = 0;
  std::uint64_t memory_bytes = 0;
  /// Of the whole GPU, in percent; absent when the driver does not tell.
  std::optional<int> use = {};
};

/// What a rank and everything it started use.
struct RankUsage {
  /// In words: `running`, `sleeping`, `waiting for a device`, `stopped`, `ended`.
  std::string state = {};
  std::chrono::milliseconds uptime = {};
  /// Of one core; absent in a first look.
  std::optional<double> cpu_percent = {};
  std::uint64_t memory_bytes = 0;
  int processes = 0;
  int threads = 0;
  std::vector<RankGpu> gpus = {};
};

/// Words for the kernel's letter.
std::string state_in_words(char state);

/// CPU that `root` and everything below it have used since `before`, in percent of one core; absent when it
/// was not there.
std::optional<double> cpu_percent(pid_t root, const ProcessTable& before, const ProcessTable& now,
                                  std::chrono::milliseconds interval);

/// Looks at the rank in `now`; CPU use is what has grown since `before`, `interval` ago.
RankUsage rank_usage(const RankView& rank, const ProcessTable& before, const ProcessTable& now,
                     std::chrono::milliseconds interval, const std::vector<GpuProcess>& gpu_processes);

}  // namespace acc::launcher
