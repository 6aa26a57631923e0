// SPDX-License-Identifier: Apache-2.0
#include "acc/base/running_clock.hpp"

#include <algorithm>

#include "acc/base/event_loop.hpp"

namespace acc {

LostTime::Duration LostTime::begin_wait(TimePoint now, Duration remaining) {
  const Duration wait = std::clamp(remaining, Duration::zero(), kMaxWait);
  due_ = now + wait;
  return wait;
}

void LostTime::end_wait(TimePoint now) {
  until(now);
  due_.reset();
}

LostTime::Duration LostTime::until(TimePoint now) {
  if (!due_ || now < *due_) return lost_;
  lost_ += now - *due_;
  due_.reset();
  return lost_;
}

namespace {

// Of one loop.
struct Waiting {
  LostTime lost_time = {};
  int waits = 0;
};

}  // namespace

RunningClock::time_point RunningClock::now() {
  const auto now = net::steady_clock::now();
  return time_point(now.time_since_epoch() - net::of_loop<Waiting>().lost_time.until(now));
}

RunningClock::duration RunningClock::begin_wait(duration remaining) {
  const auto now = net::steady_clock::now();
  LostTime& lost_time = net::of_loop<Waiting>().lost_time;
  lost_time.until(now);
  return lost_time.begin_wait(now, remaining);
}

RunningClock::Wait::Wait() {
  ++net::of_loop<Waiting>().waits;
}

// Nothing tells of the end of a wait that was cancelled but its handler.
RunningClock::Wait::~Wait() {
  if (!counts_) return;
  auto& waiting = net::of_loop<Waiting>();
  if (--waiting.waits == 0) waiting.lost_time.end_wait(net::steady_clock::now());
}

}  // namespace acc
