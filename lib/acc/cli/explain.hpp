// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// The output of `--dry_run=json`, schema 1 of apps/docs/reference.md. A port that is chosen at launch is
/// shown as
/// `<free port>`.
Value explain_json(const LaunchPlan& plan);

/// The output of `--dry_run`: the same as text.
std::string explain_text(const LaunchPlan& plan);

/// The values that are assumed because neither flags nor variables give them, as in `2 processes, 1
/// machine`; may be empty. accelerate warns about the same.
std::string assumed_text(const LaunchPlan& plan);

}  // namespace acc::launcher
