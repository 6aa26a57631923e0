// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/script/job_script.hpp"

namespace acc::launcher {

/// A batch script for sbatch.
std::string slurm_script(const ScriptJob& job);

/// A batch script for qsub of PBS Professional and OpenPBS.
std::string pbs_script(const ScriptJob& job);

}  // namespace acc::launcher
