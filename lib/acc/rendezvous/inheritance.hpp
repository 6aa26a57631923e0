// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "acc/rendezvous/node_message.hpp"

namespace acc::launcher {

/// Whether a part of a job whose hub is lost may go on: it must be the larger one, so that no two parts of a
/// cut network both do. `reached` nodes of the last round, this one included, have found each other; the
/// round had `nodes`, and `dead` of them are known to have ended.
bool may_inherit(int reached, int nodes, int dead);

/// This node's place among the heirs of the hub; absent: it has none.
std::optional<std::size_t> place_among(const std::vector<NodeInfo>& heirs, const NodeInfo& self);

/// Whether a node that links anew counts for a hub in `round` that is linked to at `port`: it was in that
/// round, and no other hub that lives can count it as well. `dead_port`: of a hub that is known to have
/// ended.
bool counts_for(const NodeHistory& history, int round, int port, int dead_port = 0);

/// Of a round with `nodes` nodes, those that an heir has yet to hear of when it takes the place of `hub`: all
/// but itself and those that are `known_dead`. What is not known of one is empty.
std::vector<NodeInfo> yet_to_come(const std::vector<NodeInfo>& heirs, const NodeInfo& hub,
                                  const NodeInfo& self, int nodes, const std::vector<NodeInfo>& known_dead);

}  // namespace acc::launcher
