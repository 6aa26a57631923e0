// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// What a node tells the others of itself.
struct RoleInfo {
  std::string role = "default";
  int local_world_size = 1;

  bool operator==(const RoleInfo&) const = default;
};

/// Where a node's workers stand among all, and among those of its role.
struct AssignedRanks {
  int first_rank = 0;
  int world_size = 1;
  int first_role_rank = 0;
  int role_world_size = 1;

  bool operator==(const AssignedRanks&) const = default;
};

/// As torchrun numbers workers: one node after the other. `nodes` by group rank.
std::vector<AssignedRanks> assign_ranks(const std::vector<RoleInfo>& nodes);

/// The texts that torchrun's agents exchange, letter for letter.
std::string to_json(const RoleInfo& node, int group_rank);
std::string to_json(const AssignedRanks& ranks);

/// Throw Error{rendezvous} for anything else.
RoleInfo read_role_info(std::string_view json);
AssignedRanks read_assigned_ranks(std::string_view json);

}  // namespace acc::launcher
