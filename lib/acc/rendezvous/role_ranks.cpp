// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/role_ranks.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

// More workers than any job has; what is over it would not fit in a Round.
constexpr int kMostWorkers = 1 << 20;

[[noreturn]] void refuse(std::string_view what, std::string_view json) {
  throw Error({.kind = ErrorKind::rendezvous,
               .what = std::string(what) + " makes no sense: " + std::string(json.substr(0, 200))});
}

int count(const nlohmann::json& value) {
  const auto number = value.get<std::int64_t>();
  if (!value.is_number_integer() || number < 0 || number > kMostWorkers) throw std::out_of_range("count");
  return static_cast<int>(number);
}

}  // namespace

std::vector<AssignedRanks> assign_ranks(const std::vector<RoleInfo>& nodes) {
  int world_size = 0;
  std::map<std::string_view, int> role_world_sizes;
  std::vector<AssignedRanks> result;
  for (const RoleInfo& node : nodes) {
    int& role_world_size = role_world_sizes[node.role];
    result.push_back({.first_rank = world_size, .first_role_rank = role_world_size});
    world_size += node.local_world_size;
    role_world_size += node.local_world_size;
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    result[i].world_size = world_size;
    result[i].role_world_size = role_world_sizes[nodes[i].role];
  }
  return result;
}

std::string to_json(const RoleInfo& node, int group_rank) {
  return R"({"role": )" +
         nlohmann::json(node.role).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) +
         R"(, "rank": )" + std::to_string(group_rank) + R"(, "local_world_size": )" +
         std::to_string(node.local_world_size) + "}";
}

std::string to_json(const AssignedRanks& ranks) {
  return "[" + std::to_string(ranks.first_rank) + ", " + std::to_string(ranks.world_size) + ", " +
         std::to_string(ranks.first_role_rank) + ", " + std::to_string(ranks.role_world_size) + "]";
}

RoleInfo read_role_info(std::string_view json) try {
  const auto info = nlohmann::json::parse(json);
  return {.role = info.at("role").get<std::string>(), .local_world_size = count(info.at("local_world_size"))};
} catch (const std::exception&) {
  refuse("what a node says of its workers", json);
}

AssignedRanks read_assigned_ranks(std::string_view json) try {
  const auto ranks = nlohmann::json::parse(json);
  return {.first_rank = count(ranks.at(0)),
          .world_size = count(ranks.at(1)),
          .first_role_rank = count(ranks.at(2)),
          .role_world_size = count(ranks.at(3))};
} catch (const std::exception&) {
  refuse("what node 0 says of the ranks", json);
}

}  // namespace acc::launcher
