// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "acc/base/progress_page.hpp"

namespace acc::launcher {

/// How far ranks got before a failure.
struct StepsReached {
  /// Whether any rank says so.
  bool is_known = false;
  /// The highest of all ranks.
  std::int64_t steps = 0;
  /// The steps are those of the training, over all restarts. Otherwise a rank counted from 0, and may have
  /// resumed anywhere.
  bool counts_over_restarts = true;

  bool operator==(const StepsReached&) const = default;
};

/// What the pages of some ranks come to.
StepsReached steps_reached(std::span<const Progress> ranks);

/// How far the ranks of both got.
StepsReached furthest(const StepsReached& first, const StepsReached& second);

/// Restarts in a row after which no rank got beyond the first of the failures around them.
struct Stall {
  StepsReached first = {};
  int restarts = 0;

  bool operator==(const Stall&) const = default;
};

/// Ends a job whose restarts lead nowhere (`--restarts-without-progress`).
class StallCount {
 public:
  /// `max`: so many restarts without progress are allowed; 0: any number.
  explicit StallCount(int max) : max_(max) {}

  /// Workers failed after they got this far, and would be started again. Returns why they are not; empty:
  /// they are. Whether steps that do not count over restarts are new is not known, so any of them is
  /// progress; a failure before which nobody said how far it is does not count.
  std::string on_failure(const StepsReached& reached);

  const Stall& stall() const { return stall_; }
  /// Goes on with what another node has counted.
  void set_stall(const Stall& stall) { stall_ = stall; }

 private:
  int max_;
  Stall stall_ = {};
};

}  // namespace acc::launcher
