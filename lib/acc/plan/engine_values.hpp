// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "acc/base/engine.hpp"
#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// What the engine that started acc contributes to a job.
struct EngineValues {
  /// The engine that was asked; empty name: none.
  Engine engine = {};
  /// Several copies of acc run on a node, one for each worker.
  std::optional<TaskPosition> task = {};
  std::vector<std::string> notes = {};
  /// Why the job cannot start here.
  std::vector<Problem> problems = {};
};

/// Asks the engine that started acc (`--engine`) for the number of machines, the rank of this one, the
/// address and port of the first, and the run id, and stores them in `settings` with their variables as
/// origins. Flags, variables and a named config file take precedence; the default config file does not: what
/// it says about machines and processes is dropped. An engine that started one process gives nothing. Under
/// torchrun's rules it is asked only if `--engine` is given; otherwise there is a note if it started several
/// copies that do not know of each other. Throws Error{usage} if a value that takes precedence contradicts
/// the engine, or if only one of several nodes would run.
EngineValues ask_engine(const LaunchInputs& inputs, Settings& settings);

/// One line for the user: the engine, and what its values became. Empty: no engine gave any.
std::string engine_text(const Engine& engine, const LaunchPlan& plan);

/// The command that starts acc with `words` on all nodes of this Slurm allocation (`--srun`); empty inside a
/// step, where it runs on all nodes already. Throws Error{usage} without an allocation.
std::vector<std::string> srun_command(const Environment& environment, const std::string& acc,
                                      const std::vector<std::string>& words);

}  // namespace acc::launcher
