// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/progress_page.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/control/job_view.hpp"
#include "acc/control/stacks.hpp"
#include "acc/launch/processes.hpp"
#include "acc/launch/reporter.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/node_hang.hpp"

namespace acc::launcher {

/// CPU time and output of a rank since it started.
struct RankActivity {
  std::chrono::nanoseconds cpu_time = {};
  std::uint64_t written = 0;
  /// What it says of itself; absent where it says nothing.
  std::optional<Progress> progress = {};
};

/// Decides when the ranks of a node count as hung: all of them are idle for `timeout`. By `activity` a rank
/// is idle while it writes nothing, enters no step, section or collective, and uses no more than 1 % of a
/// core, or 1 ms between two samples: a waiting process wakes up now and then. In a collective its CPU does
/// not count, for it may spin there. By `output` it is idle while it writes nothing. By `progress` one that
/// says how far it is is idle while it enters nothing, but in data, evaluation, saving, and what it has no
/// name for it is as by `activity`, since these may last.
class IdleClock {
 public:
  using TimePoint = RunningClock::time_point;

  IdleClock(std::chrono::milliseconds timeout, ActivityKind watch) : timeout_(timeout), watch_(watch) {}

  /// Begins a new attempt.
  void restart(TimePoint now);

  /// Takes a sample of all ranks, in the same order each time. Returns true when they count as hung: once,
  /// and again only after a rank was active in between.
  bool observe(const std::vector<RankActivity>& ranks, TimePoint now);

  /// Whether they count as hung, as of the last sample.
  bool is_idle() const { return reported_; }

  /// The time since a rank was last active.
  std::chrono::milliseconds idle(TimePoint now) const;

  /// The time between two samples: a hang is noticed after 9/8 of the timeout at the latest.
  std::chrono::milliseconds interval() const;

 private:
  bool was_active(const RankActivity& before, const RankActivity& after,
                  std::chrono::milliseconds elapsed) const;

  std::chrono::milliseconds timeout_;
  ActivityKind watch_;
  std::vector<RankActivity> last_ = {};
  TimePoint observed_ = {};
  TimePoint active_ = {};
  bool reported_ = false;
};

/// The job to watch, the other nodes, and the receiver of events.
struct HangWatchParts {
  std::function<const JobView&()> job = {};
  /// The same with what each rank says of itself, for the report.
  std::function<JobView()> view = {};
  /// What the worker says of itself.
  std::function<std::optional<Progress>(int local_rank)> progress = {};
  /// The number of bytes that the worker has written, as far as known.
  std::function<std::uint64_t(int local_rank)> written = {};
  std::function<void(AgentEvent)> send = {};
  /// For the report.
  std::function<StackOptions()> stack_options = {};
  /// As Rendezvous's.
  std::function<std::string(const NodeHang&)> tell_hang = [](const NodeHang&) { return std::string(); };
};

/// Watches on the event loop whether the ranks of a job make progress. When all are idle for the plan's
/// timeout, sends Hung with the state of each rank of this node, then HangStacks and HangExamined. Starts
/// with each attempt, pauses while the node is suspended, and ends when the job is asked to end.
///
/// In a job of several nodes each says when its ranks are idle, and the node that leads finds the hang: when
/// those of all are. HangExamined follows when all nodes have examined theirs, since the end of some workers
/// ends those that wait for them. Where that cannot be known it sends NodeIdle instead of all that.
class HangWatch : public Reporter {
 public:
  /// With `plan.timeout` 0 it never watches.
  HangWatch(boost::asio::io_context& loop, const HangPlan& plan, HangWatchParts parts);
  ~HangWatch() override;

  void report(const Event& event) override;

  /// As RankHandlers::hang.
  void on_job_hang(const JobHang& hang);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace acc::launcher
