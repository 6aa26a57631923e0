// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// Runs the job and shows on standard error what a person must know. Returns what `acc` exits with: 0, the
/// first failing worker's own code, 128 + n for a signal, or the code of the Error that kept it from
/// starting. Whatever ends this process, no worker lives on. Throws Error{system} when the job's folder or
/// its agent cannot be made.
///
/// Call it from the main thread of a process that has no other.
int launch(const LaunchPlan& plan);

}  // namespace acc::launcher
