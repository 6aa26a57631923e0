// SPDX-License-Identifier: Apache-2.0
#include "acc/base/running_clock.hpp"

#include <algorithm>

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

thread_local LostTime lost_time;
thread_local int waits = 0;

}  // namespace

RunningClock::time_point RunningClock::now() {
  const auto now = std::chrono::steady_clock::now();
  return time_point(now.time_since_epoch() - lost_time.until(now));
}

RunningClock::duration RunningClock::begin_wait(duration remaining) {
  const auto now = std::chrono::steady_clock::now();
  lost_time.until(now);
  return lost_time.begin_wait(now, remaining);
}

RunningClock::Wait::Wait() {
  ++waits;
}

// Nothing tells of the end of a wait that was cancelled but its handler.
RunningClock::Wait::~Wait() {
  if (counts_ && --waits == 0) lost_time.end_wait(std::chrono::steady_clock::now());
}

}  // namespace acc
