// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/idle_clock.hpp"

#include <algorithm>

namespace acc::launcher {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr int kLooks = 8;
constexpr int kIdlePercent = 1;
constexpr milliseconds kShortest = milliseconds(10);

}  // namespace

void IdleClock::restart(TimePoint now) {
  last_.clear();
  observed_ = active_ = now;
  said_ = false;
}

bool IdleClock::observe(const std::vector<RankActivity>& ranks, TimePoint now) {
  const milliseconds elapsed = duration_cast<milliseconds>(now - observed_);
  bool active = ranks.size() != last_.size();
  for (std::size_t i = 0; !active && i < ranks.size(); ++i) active = was_active(last_[i], ranks[i], elapsed);
  last_ = ranks;
  observed_ = now;
  if (active) {
    active_ = now;
    said_ = false;
    return false;
  }
  if (said_ || now - active_ < timeout_) return false;
  said_ = true;
  return true;
}

bool IdleClock::was_active(const RankActivity& before, const RankActivity& after,
                           milliseconds elapsed) const {
  if (after.written != before.written) return true;
  return cpu_counts_ && (after.cpu_time - before.cpu_time) * 100 > elapsed * kIdlePercent;
}

milliseconds IdleClock::idle(TimePoint now) const {
  return duration_cast<milliseconds>(now - active_);
}

milliseconds IdleClock::interval() const {
  return std::max(timeout_ / kLooks, kShortest);
}

}  // namespace acc::launcher
