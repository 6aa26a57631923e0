// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/watch.hpp"

#include <fmt/format.h>

namespace acc::launcher {
namespace {

// Why no worker can be seen; empty: they can.
std::string why_unseen(const WorkerProgram& program, const LaunchPlan& plan) {
  if (plan.delegated) return plan.worker_command.front() + " starts the workers";
  if (!program.is_for_python()) return plan.worker_command.front() + " is not a program for Python";
  if (!plan.sets_ranks) return "a single process without a rank is not followed";
  return {};
}

}  // namespace

void plan_watch(const Settings& settings, const WorkerProgram& program, LaunchPlan& plan) {
  if (!settings[key::watch].value_or(false)) return;
  const std::string reason = why_unseen(program, plan);
  plan.watch = reason.empty();
  if (plan.watch) return;
  plan.notes.push_back(fmt::format("watch ({}) has no effect: {}", settings.origin(key::watch), reason));
}

std::string watched_python_path(const Environment& inherited, const std::string& folder) {
  const std::string before = inherited.get("PYTHONPATH");
  return before.empty() ? folder : folder + ":" + before;
}

}  // namespace acc::launcher
