// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/base/environment.hpp"

namespace acc::launcher {

/// The variables that a host gets from the client: those of the trainings' libraries, by their prefixes, the
/// active virtual environment, and `exported`: NAME, or NAME=VALUE. Throws Error{usage} for a NAME that is
/// not set.
Environment carried_environment(const Environment& environment, const std::vector<std::string>& exported,
                                const std::string& where);

/// The environment of the job on a host: its own with the carried variables; an active virtual environment
/// comes first on PATH, as its `activate` does it.
Environment environment_on_host(Environment environment, const Environment& carried);

}  // namespace acc::launcher
