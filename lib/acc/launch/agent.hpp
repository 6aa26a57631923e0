// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/launch/launch_report.hpp"
#include "acc/launch/log_folder.hpp"
#include "acc/launch/oom.hpp"
#include "acc/launch/processes.hpp"
#include "acc/launch/reporter.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/rendezvous.hpp"

namespace acc::launcher {

/// What a job runs on; a test puts fakes here.
struct JobParts {
  Processes& processes;
  Rendezvous& rendezvous;
  Reporter& reporter;
  LogFolder logs = {};
  CgroupPlaces cgroups = {};
  /// The name of this machine, for the failure report.
  std::string host = "localhost";
};

/// Runs the job of `plan` on this machine until it has ended: meets the other nodes, starts the workers,
/// stops all when one fails here or elsewhere, starts them again while restarts are left, obeys signals. When
/// it returns, no worker lives and no process that one of them started. Throws Error when a worker cannot be
/// started or this machine cannot take part; then nothing is left either.
LaunchReport run(const LaunchPlan& plan, const JobParts& parts);

}  // namespace acc::launcher
