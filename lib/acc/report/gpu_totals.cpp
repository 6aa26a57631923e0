// SPDX-License-Identifier: Apache-2.0
#include "acc/report/gpu_totals.hpp"

#include <algorithm>

namespace acc::launcher {
namespace {

using Samples = std::vector<GpuSample>;

// In watts. No GPU draws more: a greater rise is that of another counter, as when a host has been replaced.
constexpr double kMaxRise = 2000;
// What is known at one moment holds for so long at most, in seconds.
constexpr double kMaxGap = 90;

/// A figure over time.
struct TimeMean {
  double sum = 0;
  double seconds = 0;

  std::optional<double> value() const { return seconds > 0 ? std::optional(sum / seconds) : std::nullopt; }
};

// Notes may be frequent for a while, so that each counts for the time until the next. One alone counts a
// little.
void add(TimeMean& mean, const Samples& samples, std::optional<double> GpuSample::* value) {
  constexpr double kLittle = 1e-3;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!(samples[i].*value)) continue;
    const bool is_last = i + 1 == samples.size();
    const double weight =
        is_last ? kLittle : std::clamp(samples[i + 1].time - samples[i].time, kLittle, kMaxGap);
    mean.sum += weight * *(samples[i].*value);
    mean.seconds += weight;
  }
}

std::optional<double> mean(const JobHistory& history, std::optional<double> GpuSample::* value) {
  TimeMean result;
  for (const auto& [gpu, samples] : history.gpus) add(result, samples, value);
  return result.value();
}

// The counter begins anew with the driver.
std::optional<double> energy(const Samples& samples) {
  const GpuSample* previous = nullptr;
  std::optional<double> sum;
  for (const GpuSample& sample : samples) {
    if (!sample.joules) continue;
    if (previous != nullptr) {
      const double joules = *sample.joules - *previous->joules;
      if (joules >= 0 && joules <= kMaxRise * (sample.time - previous->time)) sum = sum.value_or(0) + joules;
    }
    previous = &sample;
  }
  return sum;
}

}  // namespace

GpuTotals gpu_totals(const JobHistory& history) {
  GpuTotals totals = {.gpus = static_cast<int>(history.gpus.size()),
                      .mean_percent = mean(history, &GpuSample::percent),
                      .mean_watts = mean(history, &GpuSample::watts)};
  for (const auto& [gpu, samples] : history.gpus) {
    if (const auto joules = energy(samples)) totals.joules = totals.joules.value_or(0) + *joules;
  }
  return totals;
}

}  // namespace acc::launcher
