// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "acc/rendezvous/node_message.hpp"

namespace acc {

/// Whether a part of a job whose hub is lost may go on: it must be the larger one, so that no two parts of a
/// cut network both do. `reached` nodes of the last round, this one included, have found each other; the
/// round had `nodes`, and `dead` of them are known to have ended.
bool may_inherit(int reached, int nodes, int dead);

/// This node's place among the heirs of the hub; absent: it has none.
std::optional<std::size_t> place_among(const std::vector<NodeInfo>& heirs, const NodeInfo& self);

}  // namespace acc
