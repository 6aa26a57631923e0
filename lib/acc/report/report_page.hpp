// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/report/job_history.hpp"

namespace acc::launcher {

/// A page of HTML that tells how the job went. It needs no other file, no network and no script, and permits
/// none; foreign text is escaped.
std::string report_page(const JobHistory& history);

}  // namespace acc::launcher
