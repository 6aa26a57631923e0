// SPDX-License-Identifier: Apache-2.0
#include "acc/top/rate_curve.hpp"

#include <algorithm>

namespace acc::launcher {
namespace {

/// What the samples say of a part of the time.
struct PartOfCurve {
  double steps = 0;
  double seconds = 0;
};

}  // namespace

RateCurve rate_curve(const std::vector<StepHistory::Sample>& samples, std::chrono::duration<double> span,
                     std::size_t parts) {
  std::vector<PartOfCurve> sums(parts);
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const StepHistory::Sample& before = samples[i - 1];
    const StepHistory::Sample& sample = samples[i];
    const double seconds = (before.age - sample.age).count();
    if (sample.steps < before.steps || seconds <= 0 || sample.age >= span) continue;
    const double position = 1 - std::max(sample.age / span, 0.0);
    const auto part = static_cast<std::size_t>(position * static_cast<double>(parts));
    PartOfCurve& sum = sums[std::min(part, parts - 1)];
    sum.steps += static_cast<double>(sample.steps - before.steps);
    sum.seconds += seconds;
  }
  RateCurve curve;
  for (const PartOfCurve& sum : sums)
    curve.push_back(sum.seconds > 0 ? std::optional(sum.steps / sum.seconds) : std::nullopt);
  return curve;
}

std::optional<double> highest_of(const RateCurve& curve) {
  std::optional<double> highest;
  for (const std::optional<double>& rate : curve) {
    if (rate && (!highest || *rate > *highest)) highest = rate;
  }
  return highest;
}

}  // namespace acc::launcher
