// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/command_line.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// Makes the plan for a command line on this machine: reads the environment, the config file and the
/// devices. On a terminal a note lists what was assumed without a config file.
LaunchPlan make_plan(CommandLine command_line, Dialect dialect);

/// Throws the plan's problems; logs its notes and runs it. Returns the exit code.
int start(const LaunchPlan& plan);

/// The same, or prints the plan with --dry_run.
int start_or_explain(const LaunchPlan& plan);

}  // namespace acc::launcher
