// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/plan/job_shape.hpp"
#include "acc/plan/launch_inputs.hpp"

namespace acc::launcher {

/// A command that starts the workers instead of acc (mpirun, deepspeed, ...); acc supervises it as a single
/// process.
struct OtherLauncher {
  std::vector<std::string> command = {};
  /// The file to execute.
  std::filesystem::path file = {};
  /// Why it cannot be started here.
  std::optional<Problem> problem = {};
};

/// Finds the first of `names` on PATH. If there is none, the result has the first name and a problem.
OtherLauncher find_launcher(const std::vector<std::string>& names, const LaunchInputs& inputs);

/// Whether mpirun starts the workers: for CPU jobs with a hostfile.
bool uses_mpi(const JobShape& shape, const Settings& settings);

/// The mpirun or mpiexec command for `worker`, with the options of Open MPI or of MPICH (inputs.open_mpi).
OtherLauncher mpi_command(const LaunchInputs& inputs, const JobShape& shape, const Settings& settings,
                          const std::vector<std::string>& worker);

/// MASTER_ADDR and MASTER_PORT of several workers. Throws Error{usage} if they are not given for several
/// machines.
Environment mpi_environment(const JobShape& shape, const Settings& settings);

/// The variable that makes Open MPI export `added` to other machines, which it does not do by default.
/// Names that `inherited` lists are kept.
Environment open_mpi_environment(const Environment& added, const Environment& inherited);

/// The Python command that calls the script's function on each core of this machine's TPU through
/// torch_xla.
OtherLauncher tpu_command(const LaunchInputs& inputs, const Settings& settings);

/// The torch_xla command that runs the job on all machines of a TPU pod. Throws Error{usage} if the pod has
/// no name.
OtherLauncher tpu_pod_command(const LaunchInputs& inputs, const Settings& settings);

/// The variables of TPU workers.
Environment tpu_environment(const Settings& settings);

}  // namespace acc::launcher
