// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "acc/launch/error_file.hpp"
#include "acc/launch/exit_status.hpp"

namespace acc::launcher {

/// Everything that is known about the worker that failed first.
struct WorkerFailure {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  std::string host = {};
  ExitStatus status = {};
  std::chrono::system_clock::time_point when = {};
  int attempt = 0;
  /// The kernel counted a kill for lack of memory while the job ran.
  bool out_of_memory = false;
  std::optional<ErrorFile> error_file = {};
  /// The last lines of its standard error.
  std::string last_words = {};
  /// They stand on the terminal just above the report.
  bool just_above = false;
};

/// What `acc` exits with when it ended a job because it hung: timeout(1)'s code.
constexpr int kHungCode = 124;

/// How a job ended.
struct LaunchReport {
  /// exit_code_of() of all the rest.
  int exit_code = 0;
  /// What the nodes of the job agreed on, where another node or the group ended it.
  std::optional<int> group_code = {};
  /// Of the last attempt.
  std::optional<WorkerFailure> first_failure = {};
  /// Ranks that had to be stopped because of the failure.
  std::vector<int> stopped_ranks = {};
  /// Ranks that had to be killed because they did not stop.
  std::vector<int> killed_ranks = {};
  /// No worker failed, but all hung and were stopped for that (`--on-hang`).
  bool hung = false;
  /// The signal that ended the job.
  std::optional<int> stop_signal = {};
  /// The process that the user sees was killed.
  bool front_lost = false;
  /// A part of the workers' output could not be written.
  bool output_lost = false;
  int restarts = 0;
};

/// What `acc` exits with: 128 + n for a signal that ended it, then kHungCode, then the group's code, then
/// that of the worker that failed first as a shell gives it; 1 where only output was lost, else 0.
int exit_code_of(const LaunchReport& report);

}  // namespace acc::launcher
