// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/plan/launch_inputs.hpp"

namespace acc::launcher {

/// A command that starts the workers in acc's stead (mpirun, deepspeed, ...); acc runs it as one guarded
/// process.
struct OtherLauncher {
  std::vector<std::string> command = {};
  /// The file that is executed.
  std::filesystem::path file = {};
  /// Why it cannot be started here.
  std::optional<Problem> problem = {};
};

/// The command under the first of `names` that is on PATH; if none is, under the first one, with the problem.
OtherLauncher find_launcher(const std::vector<std::string>& names, const LaunchInputs& inputs);

}  // namespace acc::launcher
