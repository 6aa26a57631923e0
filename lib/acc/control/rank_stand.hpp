// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "acc/control/job_view.hpp"
#include "acc/control/process_table.hpp"

namespace acc {

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

/// CPU use is what has grown since `before`, `interval` ago.
RankStand stand_of(const RankView& rank, const ProcessTable& before, const ProcessTable& now,
                   std::chrono::milliseconds interval);

/// `sleeping in futex (futex_wait_queue), 3% CPU`.
std::string to_string(const RankStand& stand);

/// Names the ranks that differ from most others: `rank 3 differs: stopped, while the other 7 are running`. A
/// rank differs in using a fifth of the CPU that the others use, or less; or in its place, unless all work.
/// Empty when there is no majority to differ from.
std::string name_stragglers(const std::vector<RankStand>& ranks);

}  // namespace acc
