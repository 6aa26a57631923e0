// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/inheritance.hpp"

#include <algorithm>

namespace acc::launcher {
namespace {

bool links_at_same_place(const NodeInfo& one, const NodeInfo& other) {
  return one.addr == other.addr && one.link_port == other.link_port;
}

}  // namespace

bool may_inherit(int reached, int nodes, int dead) {
  return 2 * reached > nodes - dead;
}

std::optional<std::size_t> place_among(const std::vector<NodeInfo>& heirs, const NodeInfo& self) {
  for (std::size_t place = 0; place < heirs.size(); ++place) {
    if (links_at_same_place(heirs[place], self)) return place;
  }
  return std::nullopt;
}

bool counts_for(const NodeHistory& history, int round, int port, int dead_port) {
  const int asked = history.asked == dead_port ? 0 : history.asked;
  return round > 0 && history.round == round && (asked == 0 || asked == port);
}

std::vector<NodeInfo> yet_to_come(const std::vector<NodeInfo>& heirs, const NodeInfo& hub,
                                  const NodeInfo& self, int nodes, const std::vector<NodeInfo>& known_dead) {
  std::vector<NodeInfo> result = heirs;
  result.insert(result.begin(), hub);
  std::erase_if(result, [&](const NodeInfo& one) {
    return links_at_same_place(one, self) || place_among(known_dead, one);
  });
  const int others = nodes - 1 - static_cast<int>(known_dead.size());
  result.resize(static_cast<std::size_t>(std::max(others, 0)));
  return result;
}

}  // namespace acc::launcher
