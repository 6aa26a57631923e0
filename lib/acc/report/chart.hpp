// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/report/heat_map.hpp"
#include "acc/report/job_history.hpp"

namespace acc::launcher {

// SVG of a page. Horizontal offsets are percentages, so that text stays as large as it is at any width.

/// A part of a lane.
struct Bar {
  TimeSpan time = {};
  /// Of CSS.
  std::string style = {};
  /// Shown where the pointer is; not escaped yet.
  std::string title = {};
};

/// Bars on a line of time; each is wide enough to be seen.
std::string lane_svg(const TimeSpan& time, const std::vector<Bar>& bars);

/// Times since the beginning, below lanes: `0`, `10 min`, `20 min`.
std::string axis_svg(const TimeSpan& time);

/// Rows × columns of classes; an empty class leaves a cell out. `titles` of the rows are not escaped yet.
std::string heat_svg(std::size_t columns, const std::vector<std::string>& titles,
                     const std::vector<std::string>& classes);

/// A line over time, broken where a value is not finite.
struct Line {
  std::string style = {};
  std::vector<std::pair<double, double>> points = {};
};

/// The lines between `bottom` and `top`.
std::string line_svg(const TimeSpan& time, double bottom, double top, const std::vector<Line>& lines,
                     const std::string& title);

}  // namespace acc::launcher
