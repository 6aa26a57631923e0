// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "acc/base/progress_page.hpp"
#include "acc/control/job_view.hpp"
#include "acc/launch/processes.hpp"
#include "acc/launch/reporter.hpp"
#include "acc/launch/step_comparison.hpp"

namespace acc::launcher {

/// The job to watch, and the receiver of events.
struct StragglerWatchParts {
  std::function<const JobView&()> job = {};
  /// What the worker says of itself.
  std::function<std::optional<Progress>(int local_rank)> progress = {};
  std::function<void(AgentEvent)> send = {};
};

/// Compares on the event loop the ranks of this node that say how far they are, and sends Straggler for each
/// that has become slow. Reads their pages once in `period`; while none of them says anything, more and more
/// seldom. Starts with the last worker of an attempt, pauses while the job is suspended, and ends when the
/// job is asked to end.
class StragglerWatch : public Reporter {
 public:
  /// With fewer than two `workers` it never watches.
  StragglerWatch(boost::asio::io_context& loop, int workers, StragglerWatchParts parts,
                 std::chrono::milliseconds period = std::chrono::seconds(1));

  void report(const Event& event) override;

  /// Says in the view of each rank in which section it is slow.
  void mark(JobView& job) const;

 private:
  void wait();
  void compare();

  int workers_;
  StragglerWatchParts parts_;
  std::chrono::milliseconds period_;
  std::chrono::milliseconds pause_ = {};
  bool watching_ = false;
  /// Of the attempt.
  std::shared_ptr<StepComparison> comparison_ = std::make_shared<StepComparison>();
  boost::asio::steady_timer timer_;
};

}  // namespace acc::launcher
