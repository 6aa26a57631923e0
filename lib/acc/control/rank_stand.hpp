// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "acc/control/job_view.hpp"
#include "acc/control/process_table.hpp"

namespace acc::launcher {

/// Where a rank stands, in words that ranks in the same place share.
struct RankStand {
  int rank = 0;
  /// Of the thread that its program began with: `sleeping in futex (futex_wait_queue)`.
  std::string place = {};
  int processes = 0;
  int threads = 0;
  /// Of one core.
  std::optional<double> cpu_percent = {};
};

/// As the job's agent sees it. CPU use is what has grown since `before`, `interval` ago.
RankStand stand_of(const RankView& rank, const ProcessTable& before, const ProcessTable& now,
                   std::chrono::milliseconds interval);

/// `sleeping in futex (futex_wait_queue), 3% CPU`.
std::string to_string(const RankStand& stand);

struct Stragglers {
  std::vector<int> ranks = {};
  /// `rank 3 differs: stopped, while the other 7 are running`.
  std::string text = {};
};

/// The ranks that differ from most others: in using a fifth of the CPU that the others use, or less; or in
/// their place, unless all work. Empty when there is no majority to differ from.
Stragglers find_stragglers(const std::vector<RankStand>& ranks);

}  // namespace acc::launcher
