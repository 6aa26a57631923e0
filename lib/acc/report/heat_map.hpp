// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "acc/report/job_history.hpp"

namespace acc::launcher {

/// Ranks × time. Of many ranks some share a row; columns divide the time of the job evenly.
struct RankGrid {
  /// Consecutive ranks.
  struct Row {
    int first = 0;
    int last = 0;
  };
  std::vector<Row> rows = {};
  std::size_t columns = 0;
  /// Row by row.
  std::vector<std::optional<float>> cells = {};
};

struct GridSize {
  std::size_t max_rows = 256;
  std::size_t columns = 240;
};

/// The mean seconds of a step, from the end of the one before; of a row with several ranks the slowest.
RankGrid step_time_grid(const JobHistory& history, const GridSize& size = {});

/// The part of the time, from 0 to 1, that the ranks of the row spent in the section.
RankGrid section_grid(const JobHistory& history, Section section, const GridSize& size = {});

/// The median of some cells; 0 without any.
double median(std::span<const std::optional<float>> cells);

}  // namespace acc::launcher
