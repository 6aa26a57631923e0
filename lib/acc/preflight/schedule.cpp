// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/schedule.hpp"

#include <algorithm>

namespace acc::launcher {

Schedule make_schedule(int num_nodes, const std::set<std::pair<int, int>>& excluded) {
  constexpr auto kAllTransfers = std::chrono::milliseconds(3000);
  constexpr auto kMaxTransfer = std::chrono::milliseconds(250);
  constexpr int kMaxTurns = 16;
  Schedule schedule;
  // The circle method: one player stays, the others move on by one seat; an odd player more is a pause.
  const int players = num_nodes + num_nodes % 2;
  const int circle = players - 1;
  for (int turn = 0; turn < std::min(circle, kMaxTurns); ++turn) {
    std::vector<std::optional<int>> partners(static_cast<std::size_t>(num_nodes));
    const auto meet = [&](int one, int other) {
      if (one >= num_nodes || other >= num_nodes || excluded.contains(std::minmax(one, other))) return;
      partners[static_cast<std::size_t>(one)] = other;
      partners[static_cast<std::size_t>(other)] = one;
    };
    meet(circle, turn);
    for (int step = 1; step < players / 2; ++step)
      meet((turn + step) % circle, (turn + circle - step) % circle);
    schedule.turns.push_back(std::move(partners));
  }
  if (!schedule.turns.empty()) {
    const auto transfers = 2 * static_cast<int>(schedule.turns.size());
    schedule.time = std::min(kMaxTransfer, kAllTransfers / transfers);
  }
  return schedule;
}

void keep_pairs(Schedule& schedule, const std::set<std::pair<int, int>>& pairs) {
  const auto is_pause = [](const std::optional<int>& partner) { return !partner; };
  for (auto& turn : schedule.turns) {
    for (int rank = 0; rank < static_cast<int>(turn.size()); ++rank) {
      auto& partner = turn[static_cast<std::size_t>(rank)];
      if (partner && !pairs.contains(std::minmax(rank, int{*partner}))) partner.reset();
    }
  }
  std::erase_if(schedule.turns, [&](const auto& turn) { return std::ranges::all_of(turn, is_pause); });
}

}  // namespace acc::launcher
