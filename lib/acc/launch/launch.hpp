// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// Runs the job and reports on standard error. Returns the exit code of `acc`: 0, that of the first failing
/// worker, 128 + n for a signal, or the code of the Error that prevented the start. However this process
/// ends, no worker outlives it. Throws Error{system} when the job's folder or its agent cannot be created.
///
/// To be called from the main thread of a single-threaded process.
int launch(const LaunchPlan& plan);

}  // namespace acc::launcher
