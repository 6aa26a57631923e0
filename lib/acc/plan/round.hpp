// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace acc::launcher {

/// Where this node stands among the nodes of a job, for one attempt. Nodes may run different numbers of
/// workers, so its ranks cannot be computed from its own number.
struct Round {
  int machine_rank = 0;
  int num_machines = 1;
  /// Global rank of this node's worker 0, and the workers of all nodes.
  int first_rank = 0;
  int world_size = 1;
  /// The same among the workers of this node's role.
  int first_role_rank = 0;
  int role_world_size = 1;
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 0;
  /// An agent serves the store at master_addr:master_port; otherwise worker 0 is to.
  bool use_agent_store = true;

  bool operator==(const Round&) const = default;
};

}  // namespace acc::launcher
