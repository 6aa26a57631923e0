// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/control/job_view.hpp"
#include "acc/launch/processes.hpp"
#include "acc/launch/reporter.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// CPU time and output of a rank since it started.
struct RankActivity {
  std::chrono::milliseconds cpu_time = {};
  std::uint64_t written = 0;
};

/// Decides when a job counts as hung: all its ranks are idle for `timeout`. A rank is idle while it writes
/// nothing and, if CPU counts, uses no more than 1 % of a core; a waiting process wakes up now and then.
class IdleClock {
 public:
  using TimePoint = RunningClock::time_point;

  IdleClock(std::chrono::milliseconds timeout, bool cpu_counts)
      : timeout_(timeout), cpu_counts_(cpu_counts) {}

  /// Begins a new attempt.
  void restart(TimePoint now);

  /// Takes a sample of all ranks, in the same order each time. Returns true when the job counts as hung:
  /// once, and again only after a rank was active in between.
  bool observe(const std::vector<RankActivity>& ranks, TimePoint now);

  /// The time since a rank was last active.
  std::chrono::milliseconds idle(TimePoint now) const;

  /// The time between two samples: a hang is noticed after 9/8 of the timeout at the latest.
  std::chrono::milliseconds interval() const;

 private:
  bool was_active(const RankActivity& before, const RankActivity& after,
                  std::chrono::milliseconds elapsed) const;

  std::chrono::milliseconds timeout_;
  bool cpu_counts_;
  std::vector<RankActivity> last_ = {};
  TimePoint observed_ = {};
  TimePoint active_ = {};
  bool reported_ = false;
};

/// The job to watch, and the receiver of events.
struct HangWatchParts {
  std::function<const JobView&()> job = {};
  /// The number of bytes that the worker has written, as far as known.
  std::function<std::uint64_t(int local_rank)> written = {};
  std::function<void(AgentEvent)> send = {};
  /// The environment of the workers.
  Environment environment = {};
};

/// Watches on the event loop whether the ranks of a job make progress. When all are idle for the plan's
/// timeout, sends Hung with the state of each rank, then HangStacks and HangExamined. Starts with each
/// attempt, pauses while the job is suspended, and ends when the job is asked to end.
class HangWatch : public Reporter {
 public:
  /// With `plan.timeout` 0 it never watches.
  HangWatch(boost::asio::io_context& loop, const HangPlan& plan, HangWatchParts parts);
  ~HangWatch() override;

  void report(const Event& event) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace acc::launcher
