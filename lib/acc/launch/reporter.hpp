// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "acc/launch/launch_report.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/rendezvous.hpp"

namespace acc::launcher {

/// What a job tells about itself, in the order in which it happens.
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
/// A signal asked the job to end; `workers` are still running.
struct Stopping {
  int signal = 0;
  int workers = 0;
  std::chrono::milliseconds grace = {};
};
/// These did not end in time, or were not given any.
struct Killed {
  std::vector<int> ranks = {};
  std::chrono::milliseconds grace = {};
  /// A second signal asked for it.
  bool asked = false;
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
/// Nodes of the job are waited for.
struct WaitingForNodes {
  std::string text = {};
};
/// The group of nodes changed; it meets again, or the job is over.
struct GroupChanged {
  std::string text = {};
  bool again = false;
};
/// No rank has done anything for `idle`. Stacks follow, then what `then` says.
struct HangFound {
  std::chrono::milliseconds idle = {};
  /// Where each rank stands, lines for a person.
  std::string places = {};
  OnHang then = OnHang::report;
  bool cpu_counts = true;
};
/// A part of where the ranks of a job that hangs stand, as debuggers tell it.
struct HangStacksFound {
  /// Whole lines for a person.
  std::string text = {};
};
/// Something that does not end the job: a full disk under the log folder.
struct Warning {
  std::string text = {};
};
/// acc itself could not go on: a worker could not be started, the nodes did not meet.
struct Failed {
  std::string text = {};
  int exit_code = 1;
};
struct Finished {
  LaunchReport report = {};
};
using Event = std::variant<AttemptStarted, WorkerStarted, WorkerFinished, Stopping, Killed, Suspended,
                           Resumed, Restarting, WaitingForNodes, GroupChanged, HangFound, HangStacksFound,
                           Warning, Failed, Finished>;

/// Takes what happens, and shows it or keeps it.
class Reporter {
 public:
  Reporter() = default;
  virtual ~Reporter() = default;
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  virtual void report(const Event& event) = 0;
};

/// Several readers of the same events, in the order in which they were added.
class Reporters : public Reporter {
 public:
  void add(std::unique_ptr<Reporter> reader) {
    add(*reader);
    owned_.push_back(std::move(reader));
  }
  /// One that outlives this.
  void add(Reporter& reader) { readers_.push_back(&reader); }

  void report(const Event& event) override {
    for (Reporter* reader : readers_) reader->report(event);
  }

 private:
  std::vector<Reporter*> readers_ = {};
  std::vector<std::unique_ptr<Reporter>> owned_ = {};
};

}  // namespace acc::launcher
