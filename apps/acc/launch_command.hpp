// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "acc/plan/command_line.hpp"
#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/remote/job_spec.hpp"

namespace acc::launcher {

/// LaunchCall::replaced of accelerate's name.
inline constexpr const char* kAccelerate = "accelerate";

/// With --srun: replaces this process by an srun that starts `acc COMMAND WORDS...` on all nodes of the Slurm
/// allocation. Returns without the flag, and inside a step, which runs on all nodes already.
void run_with_srun(const CommandLine& command_line, const std::string& command,
                   const std::vector<std::string>& words);

/// What a plan is made of, but for the devices of this machine.
struct GatheredInputs {
  LaunchInputs inputs = {};
  std::optional<ConfigText> config = {};
  /// About the config file, for the user.
  std::vector<std::string> notes = {};
  /// LaunchCall::replaced.
  std::string replaced = {};
};

/// A text that names commands of acc, for a person who typed those of `launcher`.
std::string in_words_of(const std::string& launcher, std::string text);
std::vector<Problem> in_words_of(const std::string& launcher, std::vector<Problem> problems);

/// The config file that applies, as in accelerate: the given one, else the default one if it exists, unless
/// --cpu is given. Throws Error{system} if it cannot be read.
std::optional<ConfigText> config_text_of(const CommandLine& command_line, const Environment& environment);

/// Reads the config file of this machine, or takes the one that is given. `replaced`: as
/// LaunchCall::replaced.
GatheredInputs gather_inputs(CommandLine command_line, Dialect dialect, Environment environment);
GatheredInputs gather_inputs(CommandLine command_line, Dialect dialect, Environment environment,
                             const std::optional<ConfigText>& config, const std::string& replaced = "");

/// Makes the plan; looks for the devices of this machine.
LaunchPlan plan_of(GatheredInputs gathered);

/// Makes the plan for a command line on this machine: reads the environment, the config file and the
/// devices. On a terminal a note lists what was assumed without a config file.
LaunchPlan make_plan(CommandLine command_line, Dialect dialect);

/// Throws the plan's problems; logs its notes and runs it. Returns the exit code.
int start(LaunchPlan plan);

/// The same, or prints the plan with --dry_run.
int start_or_explain(LaunchPlan plan);

}  // namespace acc::launcher
