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
#include "acc/control/process_table.hpp"
#include "acc/launch/reporter.hpp"

namespace acc::launcher {

/// The job to watch, and the receiver of ProgressNoted.
struct ProgressWatchParts {
  std::function<const JobView&()> job = {};
  /// What the worker says of itself, or has said before it ended.
  std::function<std::optional<Progress>(int local_rank)> progress = {};
  std::function<ProcessTable()> processes = {};
  std::function<void(const ProgressNoted&)> note = {};
};

/// Notes on the event loop how far the ranks of this node are: all that run, once a minute, when more of them
/// have ended their first step, and when one ends a step after a hang; each that says how far it is, when it
/// ends. Looks at the pages every second while it waits for such a step, in the first minute and after hangs,
/// then once a minute. Pauses while the job is suspended.
class ProgressWatch : public Reporter {
 public:
  ProgressWatch(boost::asio::io_context& loop, ProgressWatchParts parts,
                std::chrono::milliseconds period = std::chrono::minutes(1));

  void report(const Event& event) override;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void begin();
  void end();
  void wait();
  void look();
  bool waits_for_step() const;
  /// How many ranks have ended a step after this moment.
  std::size_t stepped_since(std::chrono::nanoseconds moment) const;
  void note_running();
  void note_end(int local_rank);
  ProgressNoted::Rank describe(const RankView& rank) const;

  ProgressWatchParts parts_;
  std::chrono::milliseconds period_;
  TimePoint due_ = {};
  /// Of the attempt: how many ranks had ended their first step at the last look, and whether its first minute
  /// is over.
  std::size_t stepped_ = 0;
  bool has_begun_ = false;
  /// When the job hung that has ended no step since.
  std::optional<std::chrono::nanoseconds> hung_ = {};
  /// Present while the watch goes on: the handler of an expired timer cannot be cancelled any more.
  std::shared_ptr<bool> watching_ = {};
  boost::asio::steady_timer timer_;
};

}  // namespace acc::launcher
