// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/circular_buffer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "acc/base/progress_page.hpp"
#include "acc/control/job_view.hpp"
#include "acc/control/step_history.hpp"
#include "acc/launch/reporter.hpp"

namespace acc::launcher {

/// The past of a rank, in 112 KiB that are taken with the first sample.
class RankHistory {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Of ten minutes by the second, and of a day by the minute.
  static constexpr std::size_t kSeconds = 600;
  static constexpr std::size_t kMinutes = 1440;

  /// Times grow.
  void add(TimePoint now, const Progress& page);

  StepHistory view(TimePoint now) const;

 private:
  struct Sample {
    TimePoint time = {};
    std::int64_t steps = 0;
    std::chrono::nanoseconds data = {};
    std::chrono::nanoseconds communication = {};
    std::chrono::nanoseconds since_step = {};
    std::uint64_t process = 0;
  };
  using Ring = boost::circular_buffer<Sample>;

  static std::vector<StepHistory::Sample> samples_of(const Ring& ring, TimePoint now);

  Ring seconds_{kSeconds};
  Ring minutes_{kMinutes};
};

/// The job to watch.
struct ProgressHistoryParts {
  std::function<const JobView&()> job = {};
  /// What the worker says of itself.
  std::function<std::optional<Progress>(int local_rank)> progress = {};
};

/// Keeps on the event loop how far each rank of this node was, from the end of its first step on, over
/// restarts in which its ranks stay the same. Reads the pages once in `period`, and while no rank has ended a
/// step, more and more seldom; pauses while the job is suspended.
class ProgressHistory : public Reporter {
 public:
  ProgressHistory(boost::asio::io_context& loop, int workers, ProgressHistoryParts parts,
                  std::chrono::milliseconds period = std::chrono::seconds(1));

  void report(const Event& event) override;

  /// Absent: the rank is not on this node, or has not ended a step.
  std::optional<StepHistory> of(int rank) const;

 private:
  void begin();
  void end();
  void wait();
  void look();

  int workers_;
  ProgressHistoryParts parts_;
  std::chrono::milliseconds period_;
  std::chrono::milliseconds pause_ = {};
  /// Those of this node in the last attempt.
  Round round_ = {};
  std::map<int, RankHistory> ranks_ = {};
  /// Present while the watch goes on: the handler of an expired timer cannot be cancelled any more.
  std::shared_ptr<bool> watching_ = {};
  boost::asio::steady_timer timer_;
};

}  // namespace acc::launcher
