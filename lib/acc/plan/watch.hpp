// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/base/environment.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/program.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// Applies `--watch` to a plan whose program is decided. Where Python does not run the workers, or they have
/// no page to write to, it has no effect, and a note says so.
void plan_watch(const Settings& settings, const WorkerProgram& program, LaunchPlan& plan);

/// PYTHONPATH of a worker in whose Python the files in `folder` come first.
std::string watched_python_path(const Environment& inherited, const std::string& folder);

}  // namespace acc::launcher
