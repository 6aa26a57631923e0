// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "acc/base/nvml.hpp"
#include "acc/control/progress_view.hpp"
#include "acc/launch/launch_report.hpp"
#include "acc/launch/state_flush.hpp"
#include "acc/launch/step_comparison.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/preflight/exchange.hpp"
#include "acc/rendezvous/rendezvous.hpp"

namespace acc::launcher {

/// The events of a job, in order.

/// What this node was asked for, before it meets others. Values that look like secrets are masked.
struct JobStarted {
  std::vector<std::string> command = {};
  int workers = 1;
  /// By name, those that are not the default.
  std::map<std::string, Setting> settings = {};
};
struct AttemptStarted {
  int attempt = 0;
  Round round = {};
};
struct WorkerStarted {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  /// As StartedWorker::pid_inside.
  pid_t pid_inside = 0;
};
struct WorkerFinished {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  ExitStatus status = {};
};
/// The job was asked to end by a signal; `workers` are still running.
struct Stopping {
  int signal = 0;
  int workers = 0;
  std::chrono::milliseconds grace = {};
};
/// A notice of the job's end was passed on to the workers that handle its signal.
struct SignalPassedOn {
  int signal = 0;
  /// The node that received it; empty: this one.
  std::string host = {};
  /// Ranks that were signalled, and those that have no handler.
  std::vector<int> ranks = {};
  std::vector<int> ranks_without_handler = {};
};
/// These workers were killed: they did not end in time, or a second signal arrived.
struct Killed {
  std::vector<int> ranks = {};
  std::chrono::milliseconds grace = {};
  /// A second signal asked for it.
  bool second_signal = false;
};
/// The workers were stopped (Ctrl-Z), until Resumed or the end.
struct Suspended {};
struct Resumed {};
struct Restarting {
  /// Absent when no worker failed but all hung.
  std::optional<WorkerFailure> cause = {};
  int restart = 1;
  int max_restarts = 0;
};
/// The rendezvous waits for nodes.
struct WaitingForNodes {
  std::string text = {};
};
/// The nodes were checked, before their workers start.
struct PreflightFinished {
  NodeCheckResult result = {};
};
/// The membership changed: a new rendezvous begins (`restart`) or the job ends.
struct GroupChanged {
  std::string text = {};
  bool restart = false;
};
/// All ranks have been idle for `idle`. HangStacksFound follow, then the `action`.
struct HangFound {
  std::chrono::milliseconds idle = {};
  /// The state of each rank, as lines of text.
  std::string rank_states = {};
  OnHang action = OnHang::report;
  ActivityKind watch = ActivityKind::activity;
};
/// A part of the stacks of a job that hangs.
struct HangStacksFound {
  /// Whole lines for a person.
  std::string text = {};
};
/// A rank is slow in a section of its steps, and the others with which it was compared wait for it.
struct StragglerFound {
  int rank = 0;
  /// The only other rank; nullopt: there are several.
  std::optional<int> other = {};
  SlowSection slow = {};
  /// The machine of the rank; empty: it is this one, as are those of the others.
  std::string host = {};
};
/// How far ranks of this node are, and what they use.
struct ProgressNoted {
  struct Rank {
    int rank = 0;
    /// Absent where it does not say.
    std::optional<ProgressView> progress = {};
    /// Its steps are those of its training, over all restarts.
    bool counts_over_restarts = false;
    /// Of the rank and its descendants; absent when it has ended.
    std::optional<std::chrono::milliseconds> cpu_time = {};
    std::optional<std::uint64_t> memory_bytes = {};
  };
  std::vector<Rank> ranks = {};
};
/// What all processes use of the GPUs of this node's ranks.
struct GpuUseNoted {
  struct Gpu {
    GpuUse use = {};
    /// Those that have a process on it; empty: the driver does not show them.
    std::vector<int> ranks = {};
  };
  std::vector<Gpu> gpus = {};
};
/// The newest state in memory is being copied to the disk, which takes a while. StateFlushed follows, unless
/// the disk has it.
struct StateFlushing {};
/// The newest state in memory was copied to the disk, or could not be; there is none where the disk had it.
struct StateFlushed {
  FlushResult result = {};
};
/// A problem that does not end the job, such as a full disk.
struct Warning {
  std::string text = {};
};
/// acc itself failed: a worker could not be started, the rendezvous failed.
struct Failed {
  std::string text = {};
  int exit_code = 1;
};
struct Finished {
  LaunchReport report = {};
};
using Event =
    std::variant<JobStarted, AttemptStarted, WorkerStarted, WorkerFinished, Stopping, SignalPassedOn, Killed,
                 Suspended, Resumed, Restarting, WaitingForNodes, PreflightFinished, GroupChanged, HangFound,
                 HangStacksFound, StragglerFound, ProgressNoted, GpuUseNoted, StateFlushing, StateFlushed,
                 Warning, Failed, Finished>;

/// Receives the events of a job.
class Reporter {
 public:
  Reporter() = default;
  virtual ~Reporter() = default;
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  virtual void report(const Event& event) = 0;
};

/// Passes events to several reporters, in the order in which they were added.
class Reporters : public Reporter {
 public:
  void add(std::unique_ptr<Reporter> reader) {
    add(*reader);
    owned_.push_back(std::move(reader));
  }
  /// `reader` must outlive this.
  void add(Reporter& reader) { readers_.push_back(&reader); }

  void report(const Event& event) override {
    for (Reporter* reader : readers_) reader->report(event);
  }

 private:
  std::vector<Reporter*> readers_ = {};
  std::vector<std::unique_ptr<Reporter>> owned_ = {};
};

}  // namespace acc::launcher
