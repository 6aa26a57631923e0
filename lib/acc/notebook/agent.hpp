// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

#include "acc/notebook/notebook_launcher.hpp"
#include "acc/notebook/shared_text.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::detail {

/// What the agent of a notebook's job works with.
struct NotebookJob {
  const launcher::LaunchPlan& plan;
  const WorkerFunction& function;
  /// What each worker returns, by local rank.
  std::vector<SharedText> results = {};
  /// Empty: the agent was killed.
  SharedText outcome = {};
  /// The calling program, and a descriptor that becomes readable when it has ended.
  pid_t caller = 0;
  int caller_ended = -1;
};

/// Runs the job: the agent of `acc launch`, whose workers are forks of this process that call the function.
/// For a new child of the caller, with all signals blocked. Ends the process when all workers have ended.
[[noreturn]] void run_agent(const NotebookJob& job);

/// Throws the Error that run_agent() has left: with rank and text of the worker that failed first, or why
/// there was no job.
void throw_failure(const SharedText& outcome);

}  // namespace acc::detail
