// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/restart_decision.hpp"

#include <fmt/format.h>

namespace acc::launcher {
namespace {

bool holds(const FailureKinds& kinds, const WorkerFailure& failure) {
  if (kinds.oom && failure.out_of_memory) return true;
  if (const auto* exited = std::get_if<Exited>(&failure.status))
    return kinds.exit_codes.contains(exited->code);
  return kinds.any_signal || kinds.signals.contains(std::get<Signaled>(failure.status).signal);
}

double seconds(std::chrono::milliseconds duration) {
  return static_cast<double>(duration.count()) / 1000;
}

}  // namespace

RestartDecision decide_restart(const LaunchPlan& plan, int restarts, const WorkerFailure& failure,
                               std::chrono::milliseconds uptime) {
  if (restarts >= plan.max_restarts) return {};
  const bool worth = plan.retry_on.everything || holds(plan.retry_on.worth, failure);
  if (!worth || holds(plan.retry_on.not_worth, failure)) {
    return {.reason = fmt::format("not restarted: {} is not worth it (--retry-on says what is)",
                                  failure.out_of_memory ? "lack of memory" : to_string(failure.status))};
  }
  if (uptime < plan.min_uptime) {
    return {.reason = fmt::format("not restarted: failed {:g} s after its start (--min-uptime {:g})",
                                  seconds(uptime), seconds(plan.min_uptime))};
  }
  return {.restart = true};
}

}  // namespace acc::launcher
