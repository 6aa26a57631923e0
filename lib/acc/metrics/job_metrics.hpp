// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "acc/control/job_table.hpp"
#include "acc/metrics/metrics_text.hpp"

namespace acc::launcher {

/// The running jobs of a machine as metrics. The labels are `job` (its id), `rank`, `node` (the name of this
/// machine) and `section`: no command, path or user. `silent` is the number of jobs that do not answer. Of
/// jobs with one id, as two containers can have, the first is shown: a sample may not occur twice.
std::vector<Metric> job_metrics(const std::vector<JobUsage>& jobs, std::size_t silent,
                                const std::string& node);

}  // namespace acc::launcher
