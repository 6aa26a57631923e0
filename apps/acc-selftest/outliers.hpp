// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace acc::selftest {

/// A value far above the others.
struct Outlier {
  std::size_t index = 0;
  /// Its ratio to the median of all.
  double factor = 0;

  bool operator==(const Outlier&) const = default;
};

/// The values that exceed the median by more than `factor`, and by more than five robust standard deviations
/// (1.4826 times the median distance from the median), the greatest first. Of an even number of values the
/// median is the lower of the two in the middle, so that of two the greater can be an outlier.
std::vector<Outlier> find_outliers(std::span<const double> values, double factor);

}  // namespace acc::selftest
