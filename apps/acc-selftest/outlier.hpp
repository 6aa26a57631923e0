// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace acc::selftest {

/// The one time among many that stands out.
struct Outlier {
  std::size_t index = 0;
  /// How many times the median of the others it took.
  double factor = 0;
};

/// The longest of `seconds`, if it is more than `factor` times the median of the others.
std::optional<Outlier> find_outlier(std::span<const double> seconds, double factor);

/// Whom `rank` meets in a round in which all `ranks` meet in pairs; nothing: it has to sit out. Over rounds
/// 0, 1, ... num_rounds(ranks) - 1 everyone meets everyone once.
std::optional<int> partner_of(int rank, int round, int ranks);
int num_rounds(int ranks);

}  // namespace acc::selftest
