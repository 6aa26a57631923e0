// SPDX-License-Identifier: Apache-2.0
#include "acc/report/gpu_totals.hpp"

namespace acc::launcher {
namespace {

std::optional<double> mean(const JobHistory& history, std::optional<double> GpuSample::* value) {
  double sum = 0;
  int count = 0;
  for (const auto& [gpu, samples] : history.gpus) {
    for (const GpuSample& sample : samples) {
      if (!(sample.*value)) continue;
      sum += *(sample.*value);
      ++count;
    }
  }
  return count == 0 ? std::nullopt : std::optional(sum / count);
}

// The counter begins anew with the driver.
std::optional<double> energy(const std::vector<GpuSample>& samples) {
  std::optional<double> before;
  std::optional<double> sum;
  for (const GpuSample& sample : samples) {
    if (!sample.joules) continue;
    if (before && *sample.joules >= *before) sum = sum.value_or(0) + *sample.joules - *before;
    before = sample.joules;
  }
  return sum;
}

}  // namespace

GpuTotals gpu_totals(const JobHistory& history) {
  GpuTotals totals = {.gpus = static_cast<int>(history.gpus.size()),
                      .mean_percent = mean(history, &GpuSample::percent),
                      .mean_watts = mean(history, &GpuSample::watts)};
  for (const auto& [gpu, samples] : history.gpus) {
    if (const auto used = energy(samples)) totals.joules = totals.joules.value_or(0) + *used;
  }
  return totals;
}

}  // namespace acc::launcher
