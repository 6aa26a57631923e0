// SPDX-License-Identifier: Apache-2.0
#include "acc/base/running_clock.hpp"

#include <algorithm>

namespace acc {

LostTime::Duration LostTime::begin_wait(TimePoint now, Duration remaining) {
  const Duration wait = std::clamp(remaining, Duration::zero(), kMaxWait);
  due_ = now + wait;
  return wait;
}

LostTime::Duration LostTime::until(TimePoint now) {
  if (!due_ || now < *due_) return lost_;
  lost_ += now - *due_;
  due_.reset();
  return lost_;
}

namespace {

thread_local LostTime lost_time;

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

}  // namespace acc
