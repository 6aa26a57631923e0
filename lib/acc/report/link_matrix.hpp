// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "acc/report/selftest_results.hpp"

namespace acc::launcher {

/// Consecutive ranks that share a row and a column of a matrix.
struct RankGroup {
  int first = 0;
  int last = 0;
  /// Of the first rank.
  std::string host = {};

  bool operator==(const RankGroup&) const = default;
};

/// One for each rank; of more than `max_groups` ranks one for each host, or if these are still too many, or
/// only one, groups of equal size.
std::vector<RankGroup> rank_groups(const SelftestResults& results, std::size_t max_groups = 64);

/// A figure of links.
enum class LinkFigure { latency, bandwidth };

double figure_of(const SelftestResults::Link& link, LinkFigure figure);
bool is_outlier(const SelftestResults::Link& link, LinkFigure figure);

/// `19.7 µs`, `44.9 GB/s`
std::string figure_text(double value, LinkFigure figure);

/// The middle one; of an even number the greater of two. 0 without any.
double median_figure(const std::vector<SelftestResults::Link>& links, LinkFigure figure);

/// A number that is higher the slower the link is: the latency itself, or the time for a byte in place of a
/// bandwidth. Applied to a cost it gives the figure again.
double cost_of(double value, LinkFigure figure);

/// A figure of the links between each two groups, and on the diagonal of those within a group.
struct LinkMatrix {
  struct Cell {
    /// The median of the links; absent where there are none.
    std::optional<double> value = {};
    std::size_t outliers = 0;
    std::size_t links = 0;
  };
  std::vector<RankGroup> groups = {};
  /// Row by row; the matrix is symmetric.
  std::vector<Cell> cells = {};

  const Cell& cell(std::size_t row, std::size_t column) const { return cells[row * groups.size() + column]; }
  /// Some groups have several ranks.
  bool is_folded() const;
};

LinkMatrix link_matrix(const SelftestResults& results, std::vector<RankGroup> groups, LinkFigure figure);

/// Bounds of cost that divide cells into `count` classes by equal factors, from the fastest cell without an
/// outlier to the slowest; a class spans a tenth at least, so that small differences do not look like great
/// ones.
std::vector<double> class_bounds(const LinkMatrix& matrix, LinkFigure figure, std::size_t count);

}  // namespace acc::launcher
