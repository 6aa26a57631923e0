// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/base/progress_page.hpp"

namespace acc::launcher {

/// The time in each section in all steps of a rank: in whole ones, if its page says so.
inline const decltype(Progress::spent)& times_of_steps(const Progress& progress) {
  const bool is_said = progress.spent_in_steps != decltype(Progress::spent_in_steps){};
  return is_said ? progress.spent_in_steps : progress.spent;
}

/// How far a rank is, as its page says. Of another node's rank only what the comparison of ranks needs is
/// known: its process, its steps, and the time in each section in them. The end of its last step is by the
/// clock of its machine.
struct RankProgress {
  int rank = 0;
  Progress progress = {};

  bool operator==(const RankProgress&) const = default;
};

/// How far the ranks of a node are.
struct NodeProgress {
  int round = 0;
  /// Those that say so.
  std::vector<RankProgress> ranks = {};
  /// Which node it is: its number at the coordinator, and its machine; filled in by the coordinator.
  int node = 0;
  std::string host = {};

  bool operator==(const NodeProgress&) const = default;
};

/// A rank for which the others wait.
struct SlowRank {
  int rank = 0;
  acc::Section section = acc::Section::other;

  bool operator==(const SlowRank&) const = default;
};

}  // namespace acc::launcher
