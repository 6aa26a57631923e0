// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "acc/launch/launch_report.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// Whether the workers are started again after a failure.
struct RestartDecision {
  bool restart = false;
  /// Why not, although restarts are left; else empty.
  std::string reason = {};

  bool operator==(const RestartDecision&) const = default;
};

/// `restarts` have been made, and the worker failed so long after the attempt began.
RestartDecision decide_restart(const LaunchPlan& plan, int restarts, const WorkerFailure& failure,
                               std::chrono::milliseconds uptime);

}  // namespace acc::launcher
