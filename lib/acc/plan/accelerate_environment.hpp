// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/base/environment.hpp"
#include "acc/plan/job_shape.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// What `accelerate launch` 1.15 adds to every worker's environment, so that an unmodified Python
/// `Accelerator()` behaves as under it. gpu_ids count within the mask of devices that is inherited.
Environment accelerate_environment(const LaunchInputs& inputs, const JobShape& shape,
                                   const Settings& settings);

/// OMP_NUM_THREADS, or nothing where workers shall keep what they have. `acc launch` divides the allowed
/// physical cores among the workers; torchrun's rules give 1 as soon as there are two. An inherited value
/// stays. Writes the number and its origin into `settings`.
Environment thread_environment(const LaunchInputs& inputs, const JobShape& shape, Settings& settings);

}  // namespace acc::launcher
