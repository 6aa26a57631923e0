// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace acc::launcher {

/// A point of a curve. Both values are greater than 0.
struct CurvePoint {
  double x = 0;
  double y = 0;
  /// Shown where the pointer is; not escaped yet.
  std::string title = {};
};

/// Curves over a common axis; both axes are logarithmic.
struct CurveChart {
  struct Curve {
    /// Of CSS.
    std::string style = {};
    std::vector<CurvePoint> points = {};
  };
  /// A horizontal line.
  struct Level {
    std::string style = {};
    double y = 0;
    std::string title = {};
  };
  std::vector<Curve> curves = {};
  std::vector<Level> levels = {};
  /// Of the values at the axes.
  std::string (*x_text)(double) = nullptr;
  std::string (*y_text)(double) = nullptr;
};

/// The chart as SVG, as wide as there is room; empty without a point.
std::string curve_svg(const CurveChart& chart);

}  // namespace acc::launcher
