// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/launch_plan.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// Applies `--memory-checkpoints` to a plan whose program is decided. Where another program starts the
/// workers it has no effect, and a note says so. Throws Error{usage} for what is not a size.
void plan_memory_checkpoints(const Settings& settings, LaunchPlan& plan);

}  // namespace acc::launcher
