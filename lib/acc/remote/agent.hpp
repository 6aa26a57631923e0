// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>

#include "acc/remote/job_spec.hpp"

namespace acc::launcher {

/// What the agent of a host does with a job: the launcher's part.
struct HostJob {
  /// This acc's version.
  std::string version = {};
  /// Returns how long the workers have to end once they are asked to. Throws Error for what prevents the
  /// start here: the program is missing.
  std::function<std::chrono::milliseconds(const JobSpec&)> check = {};
  /// Runs this node's part of the job, in a process of its own with the job's environment and folder. Returns
  /// the exit code.
  std::function<int(const JobSpec&)> run = {};
  /// The ranks of all nodes, of the job of this process: to_json(NodeReports). Called in a child.
  std::function<std::string(const JobSpec&, pid_t job)> reports = {};
};

/// The far side of `acc launch --hosts` (`acc agent`): reads what to run on standard input, runs it, and
/// sends its output, heartbeats and exit code on standard output. It is the guard of the job here: when its
/// input ends or is silent for too long, or it gets SIGTERM, SIGHUP or SIGINT, it asks the job to end, and
/// kills it if that takes 5 s longer than its workers have. Returns the exit code of the job.
///
/// To be called from the main thread of a process without other threads.
int run_agent(const HostJob& job);

}  // namespace acc::launcher
