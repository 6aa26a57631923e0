// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "acc/base/engine_readers.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

/// A variable that counts nodes or tasks, and one that shows that it does, such as the rank of this node;
/// empty: the count is enough.
struct NodeVariables {
  std::string_view count;
  std::string_view beside = {};
};

constexpr std::array kNodeVariables = {
    NodeVariables{"AZUREML_NODE_COUNT"},        NodeVariables{"VC_WORKER_NUM"},
    NodeVariables{"NNODES", "NODE_RANK"},       NodeVariables{"NUM_NODES", "NODE_RANK"},
    NodeVariables{"WORLD_SIZE", "RANK"},        NodeVariables{"WORLD_SIZE", "NODE_RANK"},
    NodeVariables{"WORLD_SIZE", "MASTER_ADDR"}, NodeVariables{"OMPI_COMM_WORLD_SIZE"},
    NodeVariables{"MV2_COMM_WORLD_SIZE"},       NodeVariables{"PMI_SIZE"}};

/// A rank above 0, and the counts of which one belongs to it.
struct RankVariables {
  std::string_view rank;
  std::array<std::string_view, 3> counts = {};
};

constexpr std::array kRankVariables = {RankVariables{"RANK", {"WORLD_SIZE"}},
                                       RankVariables{"NODE_RANK", {"NNODES", "NUM_NODES", "WORLD_SIZE"}},
                                       RankVariables{"PMI_RANK", {"PMI_SIZE"}}};

bool is_set(const Environment& environment, std::string_view name) {
  return !name.empty() && !environment.get(name).empty();
}

std::string rank_without_count(const Environment& environment) {
  for (const RankVariables& names : kRankVariables) {
    if (parse_integer(environment.get(names.rank)).value_or(0) < 1) continue;
    if (std::ranges::any_of(names.counts, [&](std::string_view name) { return is_set(environment, name); }))
      continue;
    return fmt::format("{} without {}", engines::assignment(environment, names.rank), names.counts.front());
  }
  return {};
}

// Whether a text of JSON is HOST:PORT, as in the CLUSTER_SPEC of Vertex AI: {"cluster": {"workerpool0":
// ["HOST:PORT"], "workerpool1": ["HOST:PORT", …]}, …}.
bool is_host_with_port(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  return colon != std::string::npos && colon > 0 && parse_integer(text.substr(colon + 1)).has_value();
}

}  // namespace

std::string other_nodes(const Environment& environment) {
  if (environment.contains("LOCAL_RANK")) return {};
  for (const NodeVariables& names : kNodeVariables) {
    if (parse_integer(environment.get(names.count)).value_or(1) < 2) continue;
    if (names.beside.empty()) return engines::assignment(environment, names.count);
    if (!is_set(environment, names.beside)) continue;
    // The address of this machine belongs to a script that counts its processes.
    if (names.beside == "MASTER_ADDR" && names_loopback(environment.get(names.beside))) continue;
    return fmt::format("{} and {}", engines::assignment(environment, names.count),
                       engines::assignment(environment, names.beside));
  }
  if (std::string rank = rank_without_count(environment); !rank.empty()) return rank;
  const auto hosts = std::ranges::count_if(split(environment.get("CLUSTER_SPEC"), '"'), is_host_with_port);
  return hosts > 1 ? fmt::format("CLUSTER_SPEC with {} hosts", hosts) : "";
}

}  // namespace acc
