// SPDX-License-Identifier: Apache-2.0
#include "acc/report/log_scale.hpp"

#include <bit>
#include <cstdint>
#include <numbers>

namespace acc::launcher {

double log2_of(double value) {
  constexpr unsigned kMantissaBits = 52;
  constexpr std::uint64_t kBias = 1023;
  constexpr int kTerms = 25;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t mantissa_bits = bits & ((1ULL << kMantissaBits) - 1);
  const auto mantissa = std::bit_cast<double>(mantissa_bits | kBias << kMantissaBits);  // from 1 to 2
  // The series of the area hyperbolic tangent.
  const double ratio = (mantissa - 1) / (mantissa + 1);
  double power = ratio;
  double sum = 0;
  for (int odd = 1; odd <= kTerms; odd += 2) {
    sum += power / odd;
    power *= ratio * ratio;
  }
  const auto exponent = static_cast<std::int64_t>(bits >> kMantissaBits) - static_cast<std::int64_t>(kBias);
  return static_cast<double>(exponent) + 2 * sum / std::numbers::ln2;
}

double root_of(double value, std::size_t count) {
  constexpr int kHalvings = 100;
  double low = 1;
  double high = value;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = low + (high - low) / 2;
    (power_of(middle, count) < value ? low : high) = middle;
  }
  return high;
}

double power_of(double value, std::size_t exponent) {
  double power = 1;
  for (std::size_t i = 0; i < exponent; ++i) power *= value;
  return power;
}

double power_of_ten_below(double value) {
  double power = 1;
  while (power > value) power /= 10;
  while (power * 10 <= value) power *= 10;
  return power;
}

}  // namespace acc::launcher
