// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/launch/launch_report.hpp"

namespace acc::launcher {

/// One line: `rank 1 (local rank 1, pid 1234) on host X failed with exit code 5`.
std::string summarize(const WorkerFailure& failure);

/// The whole block that a person reads when a job has failed, each line ended. `python` is what ran the
/// worker, and why, where that is known: it is told when a module was missing.
std::string failure_text(const WorkerFailure& failure, const std::string& python = "");

/// `rank 3` or `ranks 0, 2, 3`; runs of ranks are shortened: `ranks 0-254`.
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace acc::launcher
