// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/job_shape.hpp"
#include "acc/plan/other_launcher.hpp"

namespace acc::launcher {

/// Whether mpirun is to start the workers: CPU jobs with a hostfile.
bool uses_mpi(const JobShape& shape, const Settings& settings);

/// mpirun or mpiexec in front of `worker`, in the words of the MPI that is installed (inputs.open_mpi).
OtherLauncher mpi_command(const LaunchInputs& inputs, const JobShape& shape, const Settings& settings,
                          const std::vector<std::string>& worker);

/// MASTER_ADDR and MASTER_PORT of the workers, if there are several. Throws Error{usage} when several
/// machines have none.
Environment mpi_environment(const JobShape& shape, const Settings& settings);

/// The variable that makes Open MPI hand on `added` to other machines, where it takes nothing by itself. What
/// `inherited` lists there stays.
Environment open_mpi_environment(const Environment& added, const Environment& inherited);

}  // namespace acc::launcher
