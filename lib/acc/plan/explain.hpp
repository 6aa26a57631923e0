// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// `--dry_run=json`: schema 1 of lib/README.md. `env` is what acc adds for all workers; a port that is chosen
/// at launch reads `<free port>`.
Value explain_json(const LaunchPlan& plan);

/// `--dry_run`: the same for a person, ends with a newline.
std::string explain_text(const LaunchPlan& plan);

/// The Python that runs the script, and why that one, as in `/usr/bin/python3 (PATH)`; empty: none does.
std::string interpreter_text(const LaunchPlan& plan);

/// What no flag and no variable said where there is no config file, as in `2 processes, 1 machine`; empty:
/// they said it all. accelerate warns of the same.
std::string assumed_text(const LaunchPlan& plan);

}  // namespace acc::launcher
