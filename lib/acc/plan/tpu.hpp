// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/job_shape.hpp"
#include "acc/plan/other_launcher.hpp"

namespace acc::launcher {

/// The Python that calls the script's function on each core of this machine's TPU, through torch_xla.
OtherLauncher tpu_command(const LaunchInputs& inputs, const Settings& settings);

/// The command of torch_xla that runs the job on all machines of a TPU pod. Throws Error{usage} when the pod
/// is not named.
OtherLauncher tpu_pod_command(const LaunchInputs& inputs, const Settings& settings);

/// What TPU workers get.
Environment tpu_environment(const Settings& settings);

}  // namespace acc::launcher
