// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/job_shape.hpp"
#include "acc/plan/other_launcher.hpp"

namespace acc {

/// Whether mpirun is to start the workers: CPU jobs with a hostfile.
bool uses_mpi(const JobShape& shape, const Settings& settings);

/// mpirun or mpiexec in front of `worker`, in the words of the MPI that is installed (inputs.open_mpi).
OtherLauncher mpi_command(const LaunchInputs& inputs, const JobShape& shape, const Settings& settings,
                          const std::vector<std::string>& worker);

/// MASTER_ADDR and MASTER_PORT of the workers. Throws Error{usage} when several machines have none.
Environment mpi_environment(const JobShape& shape, const Settings& settings);

}  // namespace acc
