// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/job_shape.hpp"
#include "acc/plan/other_launchers.hpp"

namespace acc::launcher {

/// Whether the `deepspeed` command starts the workers: with several machines, unless
/// deepspeed_multinode_launcher is `standard`.
bool uses_deepspeed_command(const JobShape& shape, const Settings& settings);

/// The `deepspeed` command for the program. Throws Error{usage} if there is no hostfile.
OtherLauncher deepspeed_command(const LaunchInputs& inputs, const JobShape& shape, const Settings& settings);

/// The variables that make Accelerator() train with DeepSpeed.
Environment deepspeed_environment(const LaunchInputs& inputs, const Settings& settings);

/// Conflicts between DeepSpeed's own JSON file and other settings, which accelerate would refuse in the
/// worker.
std::vector<Problem> deepspeed_problems(const Settings& settings);

/// Adds `NAME=value` lines to the text of a `.deepspeed_env`, replacing earlier lines of the same names.
/// Lines with line breaks, blanks, `;`, `<` or `>` in the value are left out: DeepSpeed cannot read them.
std::string with_lines(const std::string& text, const std::vector<std::string>& lines);

}  // namespace acc::launcher
