// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "acc/launch/exit_status.hpp"
#include "acc/launch/launch_report.hpp"
#include "acc/launch/log_folder.hpp"
#include "acc/launch/processes.hpp"
#include "acc/launch/reporter.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/rendezvous.hpp"

namespace acc::launcher {

/// Begins to check the nodes of a round before its workers start; NodesChecked follows.
using CheckNodes = std::function<void(const Round& round, int attempt)>;

/// What brings the newest state in memory to the disk.
struct FlushParts {
  /// Begins to copy it; FlushEnded follows, unless it returns false: there is none.
  std::function<bool(Workers workers)> begin = {};
  /// Makes that end within seconds, done or not.
  std::function<void()> interrupt = {};
};

/// What the agent works with; tests pass fakes.
struct JobParts {
  Processes& processes;
  Rendezvous& rendezvous;
  Reporter& reporter;
  /// Empty: they are not checked.
  CheckNodes check_nodes = {};
  /// Empty: the job has no folder in memory.
  FlushParts flush = {};
  LogFolder logs = {};
  /// Of --watch; empty: workers are not watched.
  std::filesystem::path watch_folder = {};
  CgroupPaths cgroups = {};
  KernelLogPaths kernel_log = {};
  /// The host name in the failure report.
  std::string host = "localhost";
};

/// Whether the workers are told to use no GPU.
bool is_on_cpu(const LaunchPlan& plan);

/// Runs this node's part of the job until it has ended: joins the rendezvous, starts the workers, stops all
/// when one fails here or on another node, restarts them while restarts are left, and obeys signals. When it
/// returns or throws, all workers and their descendants have ended. Throws Error when a worker cannot be
/// started or the rendezvous fails.
LaunchReport run(const LaunchPlan& plan, const JobParts& parts);

}  // namespace acc::launcher
