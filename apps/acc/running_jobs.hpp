// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/control/control_client.hpp"

namespace acc::launcher {

/// The running jobs of this user. Reports jobs that do not answer, and folders that cannot be used, on
/// standard error.
FoundJobs running_jobs();

/// Finds a job by id, by a prefix of it, or by a process of it. Throws Error{usage}.
RunningJob running_job(const std::string& name);

}  // namespace acc::launcher
