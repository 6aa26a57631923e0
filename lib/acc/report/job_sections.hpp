// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/report/job_history.hpp"

namespace acc::launcher {

// The parts of a page that tell of a job; empty where nothing is known.

/// The names of a few hosts, not escaped yet.
std::string hosts_text(const JobHistory& history);

/// How each worker failed, with the end of its standard error.
std::string failures_section(const JobHistory& history);

/// The command of the workers, and the settings that are not the default.
std::string settings_section(const JobHistory& history);

}  // namespace acc::launcher
