// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/control/control_client.hpp"

namespace acc::launcher {

/// This user's running jobs. Says on standard error which jobs do not answer, and which folders cannot be
/// used.
FoundJobs running_jobs();

/// The one that `name` means. Throws Error{usage}.
RunningJob running_job(const std::string& name);

}  // namespace acc::launcher
