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

/// Notes on the event loop how far the ranks of this node are: all that run, once a minute and when they have
/// ended their first step; each that says how far it is, when it ends. Looks at the pages every second until
/// the first steps have ended, then once a minute. Pauses while the job is suspended.
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
  bool have_ended_first_steps() const;
  void note_running();
  void note_end(int local_rank);
  ProgressNoted::Rank describe(const RankView& rank) const;

  ProgressWatchParts parts_;
  std::chrono::milliseconds period_;
  TimePoint due_ = {};
  bool first_steps_ended_ = false;
  /// Present while the watch goes on: the handler of an expired timer cannot be cancelled any more.
  std::shared_ptr<bool> watching_ = {};
  boost::asio::steady_timer timer_;
};

}  // namespace acc::launcher
