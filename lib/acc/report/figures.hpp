// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/report/goodput.hpp"
#include "acc/report/job_history.hpp"

namespace acc::launcher {

/// The script or program that the job ran, without its folder: `train.py`; else `job`.
std::string job_title(const JobHistory& history);

/// How the job ended, in one sentence: `Succeeded after 1 h 2 min, with 2 restarts.`
std::string outcome_text(const JobHistory& history);

/// The number of ranks of the largest attempt.
int world_size_of(const JobHistory& history);

/// The figures of a report, schema 1 of `acc report --json`; fields are only added to it.
std::string figures_json(const JobHistory& history);

}  // namespace acc::launcher
