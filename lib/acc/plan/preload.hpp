// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/program.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// Applies `--preload` to a plan whose program is decided. Throws Error{usage} for what is not a list of
/// modules, and if the flag is given for a program that Python does not run; from a file or a variable the
/// setting then has no effect, and a note says so.
void plan_preload(const LaunchInputs& inputs, const Settings& settings, const WorkerProgram& program,
                  LaunchPlan& plan);

/// Whether the worker is forked from a process that has imported the modules. A wrapped one is a program of
/// its own, and one that is attached to the terminal gets it before its program starts.
bool is_preloaded(const LaunchPlan& plan, int rank);

/// The environment of that process.
struct PreloadEnvironment {
  /// What all workers of all attempts have in common.
  Environment shared = {};
  /// The names of the variables that each worker gets with a value of its own.
  std::vector<std::string> per_worker = {};
};
PreloadEnvironment preload_environment(const LaunchPlan& plan);

}  // namespace acc::launcher
