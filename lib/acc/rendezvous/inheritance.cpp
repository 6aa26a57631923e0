// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/inheritance.hpp"

namespace acc {

bool may_inherit(int reached, int nodes, int dead) {
  return 2 * reached > nodes - dead;
}

std::optional<std::size_t> place_among(const std::vector<NodeInfo>& heirs, const NodeInfo& self) {
  for (std::size_t place = 0; place < heirs.size(); ++place) {
    if (heirs[place].addr == self.addr && heirs[place].link_port == self.link_port) return place;
  }
  return std::nullopt;
}

}  // namespace acc
