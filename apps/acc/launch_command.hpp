// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/plan/command_line.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// What --version prints.
inline constexpr const char* kVersionLine = "acc " ACC_VERSION;

/// What a typed command line means on this machine: reads the environment, the config file and the devices.
/// On a terminal a note tells what was assumed for want of a config file.
LaunchPlan make_plan(CommandLine command_line, Dialect dialect);

/// Throws the plan's problems, says its notes, and runs it. Returns the exit code.
int start(const LaunchPlan& plan);

/// The same, or with --dry_run says what it would do.
int start_or_explain(const LaunchPlan& plan);

/// `acc launch`, or `acc run` and the name torchrun by their dialect. `program` is how the help calls it.
int launch_command(const std::vector<std::string>& words, Dialect dialect, const std::string& program);

}  // namespace acc::launcher
