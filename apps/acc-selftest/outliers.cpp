// SPDX-License-Identifier: Apache-2.0
#include "outliers.hpp"

#include <algorithm>
#include <cmath>

namespace acc::selftest {
namespace {

double nth(std::vector<double> values, std::size_t index) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Of normally distributed values it is the standard deviation. Two values have none.
double robust_deviation(std::span<const double> values, double median) {
  constexpr double kOfNormal = 1.4826;
  if (values.size() < 3) return 0;
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - median));
  return kOfNormal * nth(distances, distances.size() / 2);
}

}  // namespace

std::vector<Outlier> find_outliers(std::span<const double> values, double factor) {
  constexpr double kDeviations = 5;
  if (values.size() < 2) return {};
  const double median = nth({values.begin(), values.end()}, (values.size() - 1) / 2);
  const double threshold = std::max(factor * median, median + kDeviations * robust_deviation(values, median));
  std::vector<Outlier> outliers;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] > threshold) outliers.push_back({.index = i, .factor = values[i] / median});
  std::ranges::sort(outliers, std::ranges::greater(), &Outlier::factor);
  return outliers;
}

}  // namespace acc::selftest
