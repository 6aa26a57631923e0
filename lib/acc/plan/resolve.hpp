// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// Whether resolve() needs to know the GPUs of the machine. If not, the caller need not load the library of
/// the driver.
bool needs_gpus(Dialect dialect, const Settings& settings);

/// How acc logs, by these settings and ACC_LOG_LEVEL. Throws Error{usage} for a level that does not exist.
log::Options choose_log(const LaunchInputs& inputs, const Settings& settings);

/// Decides everything about a job. A pure function but for the callbacks in `inputs`: equal inputs give
/// equal plans. Throws Error{usage} if the inputs contradict each other; what only prevents a start on this
/// machine becomes a problem of the plan.
LaunchPlan resolve(const LaunchInputs& inputs);
/// With the settings of `inputs`, if the caller has them.
LaunchPlan resolve(const LaunchInputs& inputs, Settings settings);

}  // namespace acc::launcher
