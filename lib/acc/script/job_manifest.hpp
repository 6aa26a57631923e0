// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/script/job_script.hpp"

namespace acc::launcher {

/// An Indexed Job of Kubernetes with its headless Service; for one node a Job alone.
std::string indexed_job_manifest(const ScriptJob& job);

/// A JobSet of one Indexed Job.
std::string jobset_manifest(const ScriptJob& job);

}  // namespace acc::launcher
