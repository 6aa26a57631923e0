// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "acc/base/event_loop.hpp"

namespace acc {

/// The time that a process lost because it could not run: it was stopped, its container was frozen, its
/// virtual machine was paused, or it was busy with something else. No system call tells; what tells is a wait
/// that ends later than it was to.
class LostTime {
 public:
  using TimePoint = net::steady_clock::time_point;
  using Duration = TimePoint::duration;

  /// Longest wait without a look at the clock: of a loss, no more than this goes unnoticed.
  static constexpr Duration kMaxWait = std::chrono::seconds(1);

  /// A wait of at most `remaining` begins. Returns how long it may last before the clock is looked at.
  Duration begin_wait(TimePoint now, Duration remaining);

  /// The wait is over, also if it was cancelled: what comes later is not lost.
  void end_wait(TimePoint now);

  /// The time lost until `now`.
  Duration until(TimePoint now);

 private:
  Duration lost_ = {};
  /// The end of the wait that is going on.
  std::optional<TimePoint> due_ = {};
};

/// The steady clock without the time in which this process could not run, for deadlines and for the silence
/// of others: after a pause, others have as much time left as before it. Time is missed only while a
/// RunningTimer waits. Each thread has its own.
struct RunningClock {
  using duration = LostTime::Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<RunningClock, duration>;
  static constexpr bool is_steady = true;  // NOLINT: the name of all clocks

  static time_point now();
  /// As LostTime::begin_wait(), from now on.
  static duration begin_wait(duration remaining);

  /// Time is missed while there is one of these, that is for as long as a timer has a handler to call.
  class Wait {
   public:
    Wait();
    ~Wait();
    Wait(Wait&& other) noexcept : counts_(std::exchange(other.counts_, false)) {}
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    Wait& operator=(Wait&&) = delete;

   private:
    bool counts_ = true;
  };
};

/// How Asio waits for a time of RunningClock.
struct RunningClockWaits {
  static RunningClock::duration to_wait_duration(const RunningClock::duration& remaining) {
    return RunningClock::begin_wait(remaining);
  }
  static RunningClock::duration to_wait_duration(const RunningClock::time_point& time) {
    return to_wait_duration(time - RunningClock::now());
  }
};

/// net::steady_timer on RunningClock.
class RunningTimer : private net::basic_waitable_timer<RunningClock, RunningClockWaits> {
 public:
  using basic_waitable_timer::basic_waitable_timer;
  using basic_waitable_timer::cancel;
  using basic_waitable_timer::expires_after;
  using basic_waitable_timer::expires_at;
  using basic_waitable_timer::expiry;

  template <class Handler>
  void async_wait(Handler handler) {
    basic_waitable_timer::async_wait([wait = RunningClock::Wait(), handler = std::move(handler)](
                                         boost::system::error_code error) mutable { handler(error); });
  }
};

}  // namespace acc
