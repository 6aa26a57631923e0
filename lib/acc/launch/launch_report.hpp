// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/launch/error_file.hpp"
#include "acc/launch/exit_status.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/preflight/kernel_log.hpp"

namespace acc::launcher {

/// What is known about a failed worker.
struct WorkerFailure {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  std::string host = {};
  ExitStatus status = {};
  std::chrono::system_clock::time_point time = {};
  int attempt = 0;
  /// The OOM killer has killed a process during the job.
  bool out_of_memory = false;
  /// If it has: of the cgroup with the lowest limit.
  std::optional<CgroupMemory> cgroup_memory = {};
  /// Faults of its machine's GPUs that the kernel has logged since the job's start. Absent: not known.
  std::optional<std::vector<Xid>> xids = {};
  std::optional<ErrorFile> error_file = {};
  /// The last lines of its standard error.
  std::string stderr_tail = {};
  /// They are still visible on the terminal, just above the report.
  bool just_above = false;
};

/// The exit code of `acc` when it stopped a job that hung: timeout(1)'s code.
constexpr int kHungCode = 124;

/// The exit code of `acc` that asks an engine to start the job again (`--requeue-on-preemption`):
/// sysexits.h's EX_TEMPFAIL, that of a rendezvous that timed out.
constexpr int kRequeueCode = 75;

/// How a job ended.
struct LaunchReport {
  /// exit_code_of() of the other members.
  int exit_code = 0;
  /// The exit code that the nodes agreed on, when another node ended the job.
  std::optional<int> group_code = {};
  /// Of the last attempt.
  std::optional<WorkerFailure> first_failure = {};
  /// It is that of a worker of this node.
  bool own_failure = false;
  /// Ranks of this node that had ended before it, with exit code 0.
  std::vector<int> ended_ranks = {};
  /// Ranks that were stopped because of the failure.
  std::vector<int> stopped_ranks = {};
  /// Ranks that were killed because they did not stop.
  std::vector<int> killed_ranks = {};
  /// No worker failed, but all hung and were stopped for that (`--on-hang`).
  bool hung = false;
  /// The signal that ended the job.
  std::optional<int> stop_signal = {};
  /// `--requeue-on-preemption`, and the job got notice of its end, or SIGTERM.
  bool preempted = false;
  /// The supervisor was killed.
  bool supervisor_lost = false;
  /// Some output of the workers was lost.
  bool output_lost = false;
  int restarts = 0;
};

/// Whether the job was preempted and obeyed: no worker had to be killed, none failed for a reason of its own,
/// and the nodes have agreed on no other exit code.
bool asks_for_requeue(const LaunchReport& report);

/// The exit code of `acc`, the first that applies: kRequeueCode if asks_for_requeue(), 128 + n for a signal
/// that ended it, kHungCode, the group's code, that of the worker that failed first as a shell gives it, 1 if
/// only output was lost, 0.
int exit_code_of(const LaunchReport& report);

/// Whether the worker failed because it lost another one: its error file says so, or its message is one that
/// names_lost_peer(), in the error file or, without a valid one, at the end of stderr.
bool is_consequence(const WorkerFailure& failure);

/// Which of the failed workers is the cause; a consequence only if all are, and then one that another has
/// lost. Otherwise by torchrun's rule: the one that was seen first, unless the error file of another has an
/// earlier second (two exact files: an earlier time), since a process can take long to end after its
/// exception. `failures` is not empty and in the order in which the workers ended; returns an index in it.
std::size_t find_root_cause(const std::vector<WorkerFailure>& failures);

/// Whether the workers are started again after a failure.
struct RestartDecision {
  bool restart = false;
  /// Why not, if restarts are left; else empty.
  std::string reason = {};

  bool operator==(const RestartDecision&) const = default;
};

/// `restarts`: so far. `uptime`: from the start of the attempt to the failure.
RestartDecision decide_restart(const LaunchPlan& plan, int restarts, const WorkerFailure& failure,
                               std::chrono::milliseconds uptime);

/// The failure as one line of JSON, for other nodes. Traceback and stderr are cut to the last 16 KiB each.
std::string to_json_text(const WorkerFailure& failure);

/// Missing or invalid fields keep their defaults.
WorkerFailure parse_failure(std::string_view text);

}  // namespace acc::launcher
