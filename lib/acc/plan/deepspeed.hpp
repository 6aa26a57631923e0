// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/job_shape.hpp"
#include "acc/plan/other_launcher.hpp"

namespace acc::launcher {

/// Whether the `deepspeed` command is to start the workers: several machines, unless
/// deepspeed_multinode_launcher says `standard`.
bool uses_deepspeed_command(const JobShape& shape, const Settings& settings);

/// The `deepspeed` command for the program. Throws Error{usage} without a hostfile.
OtherLauncher deepspeed_command(const LaunchInputs& inputs, const JobShape& shape, const Settings& settings);

/// What tells accelerate's Accelerator() in a worker to train with DeepSpeed.
Environment deepspeed_environment(const LaunchInputs& inputs, const Settings& settings);

/// Why DeepSpeed's own JSON file and other settings cannot stand together: accelerate in the worker would
/// refuse them.
std::vector<Problem> deepspeed_problems(const Settings& settings);

/// The text of a `.deepspeed_env` with these lines in it (`NAME=value`), each in place of what it said about
/// the name before. DeepSpeed cannot read values with line ends, blanks or `;`, `<`, `>`: such lines are left
/// out.
std::string with_lines(const std::string& text, const std::vector<std::string>& lines);

}  // namespace acc::launcher
