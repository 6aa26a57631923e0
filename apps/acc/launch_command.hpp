// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/command_line.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// What a typed command line means on this machine: reads the environment, the config file and the devices.
/// On a terminal a note tells what was assumed for want of a config file.
LaunchPlan make_plan(CommandLine command_line, Dialect dialect);

/// Throws the plan's problems, says its notes, and runs it. Returns the exit code.
int start(const LaunchPlan& plan);

/// The same, or with --dry_run says what it would do.
int start_or_explain(const LaunchPlan& plan);

}  // namespace acc::launcher
