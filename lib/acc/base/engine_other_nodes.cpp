// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "acc/base/engine_readers.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

/// A variable that counts nodes, and one that tells the rank of this node; empty: the count is enough.
struct NodeVariables {
  std::string_view count;
  std::string_view rank = {};
};

constexpr std::array kNodeVariables = {
    NodeVariables{"AZUREML_NODE_COUNT"},  NodeVariables{"VC_WORKER_NUM"},
    NodeVariables{"NNODES", "NODE_RANK"}, NodeVariables{"NUM_NODES", "NODE_RANK"},
    NodeVariables{"WORLD_SIZE", "RANK"},  NodeVariables{"WORLD_SIZE", "NODE_RANK"}};

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
    if (names.rank.empty()) return engines::assignment(environment, names.count);
    if (!environment.contains(names.rank)) continue;
    return fmt::format("{} and {}", engines::assignment(environment, names.count),
                       engines::assignment(environment, names.rank));
  }
  const auto hosts = std::ranges::count_if(split(environment.get("CLUSTER_SPEC"), '"'), is_host_with_port);
  return hosts > 1 ? fmt::format("CLUSTER_SPEC with {} hosts", hosts) : "";
}

}  // namespace acc
