// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace acc::launcher {

/// Who measures with whom, and for how long. In a turn a node has one partner at most.
struct Schedule {
  /// For each turn the partner of each node, by its rank; absent: it pauses.
  std::vector<std::vector<std::optional<int>>> turns = {};
  /// Of a transfer in one direction.
  std::chrono::milliseconds time = {};
};

/// A round-robin tournament: every two nodes meet once. With many nodes each meets as many others as there is
/// time for: the transfers of a node take 3 s together at most. `excluded` pairs do not meet.
Schedule make_schedule(int num_nodes, const std::set<std::pair<int, int>>& excluded);

/// Only these pairs meet, in the same order; turns in which nobody does are left out.
void keep_pairs(Schedule& schedule, const std::set<std::pair<int, int>>& pairs);

}  // namespace acc::launcher
