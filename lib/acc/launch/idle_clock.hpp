// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace acc::launcher {

/// What a rank has done since it started.
struct RankActivity {
  std::chrono::milliseconds cpu_time = {};
  std::uint64_t written = 0;
};

/// Decides when a job counts as hung: all its ranks are idle for `timeout`. A rank is idle while it writes
/// nothing and, if CPU counts, uses no more than 1 % of a core; a waiting process wakes up now and then.
class IdleClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  IdleClock(std::chrono::milliseconds timeout, bool cpu_counts)
      : timeout_(timeout), cpu_counts_(cpu_counts) {}

  /// A new attempt: everything before is forgotten.
  void restart(TimePoint now);

  /// Looks at all ranks, in the same order each time. True: now the job counts as hung. That is said once,
  /// and again only after a rank was active in between.
  bool observe(const std::vector<RankActivity>& ranks, TimePoint now);

  /// How long nobody has been active.
  std::chrono::milliseconds idle(TimePoint now) const;

  /// How often to observe: a hang is noticed after 9/8 of the timeout at the latest.
  std::chrono::milliseconds interval() const;

 private:
  bool was_active(const RankActivity& before, const RankActivity& after,
                  std::chrono::milliseconds elapsed) const;

  std::chrono::milliseconds timeout_;
  bool cpu_counts_;
  std::vector<RankActivity> last_ = {};
  TimePoint observed_ = {};
  TimePoint active_ = {};
  bool said_ = false;
};

}  // namespace acc::launcher
