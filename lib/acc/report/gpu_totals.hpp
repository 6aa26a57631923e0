// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "acc/report/job_history.hpp"

namespace acc::launcher {

/// What the GPUs of a job did; means are over time and all GPUs. Absent: not known.
struct GpuTotals {
  int gpus = 0;
  std::optional<double> mean_percent = {};
  /// Of one GPU.
  std::optional<double> mean_watts = {};
  /// Of all, each from its first sample to its last.
  std::optional<double> joules = {};
};

GpuTotals gpu_totals(const JobHistory& history);

}  // namespace acc::launcher
