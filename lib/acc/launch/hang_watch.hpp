// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "acc/base/environment.hpp"
#include "acc/control/job_view.hpp"
#include "acc/launch/processes.hpp"
#include "acc/launch/reporter.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// What a watch needs to know of its job, and whom it tells.
struct HangWatchParts {
  std::function<const JobView&()> job = {};
  /// Bytes that a worker has written, as far as it is known.
  std::function<std::uint64_t(int local_rank)> written = {};
  std::function<void(Happening)> tell = {};
  /// Of the workers.
  Environment environment = {};
};

/// Watches on the event loop whether the ranks of a job do anything; when none does for the plan's time,
/// finds out where each stands and then tells it. Starts with each attempt, pauses while the job is
/// suspended, and ends when it is asked to end.
class HangWatch : public Reporter {
 public:
  /// `plan.timeout` 0: never watches.
  HangWatch(boost::asio::io_context& loop, const HangPlan& plan, HangWatchParts parts);
  ~HangWatch() override;

  void report(const Event& event) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace acc::launcher
