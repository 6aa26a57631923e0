// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// Whether resolve() looks at the machine's GPUs, all else being given: who asks for them loads the driver's
/// library. Throws as Settings does.
bool needs_gpus(const LaunchInputs& inputs);

/// Decides everything about a job. Pure but for `inputs.file_kind`: equal inputs give equal plans.
/// Throws Error{usage} when the inputs contradict each other; what merely keeps the job from starting on this
/// machine becomes a problem of the plan.
LaunchPlan resolve(const LaunchInputs& inputs);

}  // namespace acc::launcher
