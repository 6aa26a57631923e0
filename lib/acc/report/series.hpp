// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "acc/report/job_history.hpp"

namespace acc::launcher {

/// A figure of all ranks at one time.
struct SeriesPoint {
  double time = 0;
  double mean = 0;
  double highest = 0;
};
using Series = std::vector<SeriesPoint>;

// Each has up to `points` points over the time of the job; where nothing is known there is none.

/// Cores in use, of a rank and its descendants.
Series cpu_series(const JobHistory& history, std::size_t points = 240);
/// Resident bytes, of the same; what they share counts in each.
Series memory_series(const JobHistory& history, std::size_t points = 240);
/// The loss that each rank has; NaN or infinite where that of a rank is.
Series loss_series(const JobHistory& history, std::size_t points = 240);
/// Of each GPU, by all processes: its use in percent, its memory in bytes, and the watts that it draws.
Series gpu_use_series(const JobHistory& history, std::size_t points = 240);
Series gpu_memory_series(const JobHistory& history, std::size_t points = 240);
Series gpu_power_series(const JobHistory& history, std::size_t points = 240);

}  // namespace acc::launcher
