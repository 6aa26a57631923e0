// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace acc::launcher {

/// Another node of a round, as its coordinator knows it.
struct PeerNode {
  int node_rank = 0;
  /// The machine's name.
  std::string host = {};
  /// How many ranks it has.
  int workers = 0;
  /// The lowest of them; -1: the coordinator runs an acc that does not say.
  int first_rank = -1;
  /// It reports its ranks; false: it runs an older acc.
  bool reports = false;

  bool operator==(const PeerNode&) const = default;
};

/// The ranks of a node at one moment. It reports them only while somebody looks at the job.
struct RankReport {
  int round = 0;
  /// Which node it is; filled in by the coordinator.
  int node_rank = 0;
  /// What `acc ps --json` shows of its ranks. Only the viewer reads it; empty: the node cannot say.
  std::string ranks = {};

  bool operator==(const RankReport&) const = default;
};

/// The longest text of a report that a coordinator passes on. A rank takes 1 KB.
inline std::size_t max_report_bytes(int workers) {
  constexpr std::size_t kOfRank = std::size_t{4} << 10U;
  return kOfRank * static_cast<std::size_t>(std::clamp(workers, 1, 256));
}

}  // namespace acc::launcher
