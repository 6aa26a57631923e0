// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "acc/base/environment.hpp"
#include "acc/base/machine.hpp"
#include "acc/notebook/notebook_launcher.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::detail {

/// What a plan depends on beside the options.
struct NotebookHost {
  Environment environment = {};
  Machine machine = {};
  std::function<int()> allowed_cores = acc::allowed_cores;
  std::filesystem::path folder = {};
  /// The running program.
  std::filesystem::path program = {};
};

/// Gathers it from this process, without initializing CUDA.
NotebookHost this_host();

/// The plan of `acc launch` for the job, whose program is the running one. Throws Error{usage} that names
/// the option when one is wrong or missing.
launcher::LaunchPlan plan_notebook_job(const NotebookLauncherOptions& options, const NotebookHost& host);

/// accelerate's line: `Launching training on 2 GPUs.`
std::string announcement(const launcher::LaunchPlan& plan);

}  // namespace acc::detail
