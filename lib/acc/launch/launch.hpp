// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>

#include "acc/launch/fork_server.hpp"
#include "acc/launch/launch_report.hpp"
#include "acc/launch/local_processes.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// Runs the job and reports on standard error. Returns the exit code of `acc`: 0, that of the first failing
/// worker, 128 + n for a signal, kRequeueCode, or the code of the Error that prevented the start. However
/// this process ends, no worker outlives it. Throws Error{system} when the job's folder or its agent cannot
/// be created.
///
/// To be called from the main thread of a single-threaded process.
int launch(LaunchPlan plan);

/// The program that a job is part of, in the place of `acc`.
struct HostProgram {
  pid_t pid = 0;
  /// A descriptor that becomes readable when it has ended.
  int exit_event = -1;
  /// Starts a worker.
  StartProcess start = execute;
  /// For the workers of a plan with `preload`.
  std::optional<WarmPython> python = {};
};

/// Runs the job in this process, as the agent of `program`. Which worker failed is in the report, not on
/// standard error. When the program ends, all workers are killed. Throws the Error that prevented the start
/// or ended the job. To be called once, from the main thread of a child of the program that leads its own
/// session, is a subreaper, and has forwarded_signals() blocked.
LaunchReport run_for_program(const LaunchPlan& plan, const HostProgram& program);

}  // namespace acc::launcher
