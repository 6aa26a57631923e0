// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace acc::launcher {

/// What a matrix chart shows in a cell.
struct MatrixCell {
  /// Of CSS; empty: the cell is left out.
  std::string style = {};
  /// Shown in the cell of a small matrix.
  std::string text = {};
  /// Shown where the pointer is; not escaped yet.
  std::string title = {};
  /// It has a frame.
  bool is_marked = false;
};

/// A matrix with as many rows as columns.
struct MatrixChart {
  /// Of rows and columns, one each.
  std::vector<std::string> labels = {};
  /// Row by row.
  std::vector<MatrixCell> cells = {};
  /// Rows, and columns, in front of which there is a line.
  std::vector<std::size_t> borders = {};
};

/// The chart as SVG, as wide as there is room. Of many labels some are left out.
std::string matrix_svg(const MatrixChart& chart);

}  // namespace acc::launcher
