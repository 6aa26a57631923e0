// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/preflight/node_health.hpp"

namespace acc::test {

using namespace launcher;

inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

/// A node with two GPUs and nothing wrong.
inline NodeHealth healthy_node(int rank) {
  NodeHealth node{.rank = rank,
                  .host = "node" + std::to_string(rank),
                  .workers = 2,
                  .driver = "550.54",
                  .xids = std::vector<Xid>{},
                  .memory_bytes = 256 * kGiB,
                  .free_memory_bytes = 200 * kGiB,
                  .log_folder = "/tmp",
                  .free_disk_bytes = 50 * kGiB,
                  .meeting = {.name = "node0", .lookup = {.addresses = {"10.0.0.10"}}},
                  .address = "10.0.0.1" + std::to_string(rank),
                  .port = 4000};
  node.own_name = ResolvedName{.name = node.host, .lookup = {.addresses = {node.address}}};
  for (int index = 0; index < 2; ++index) {
    node.gpus.push_back({.gpu = {.index = index,
                                 .name = "H100",
                                 .uuid = "GPU-" + std::to_string(index),
                                 .memory_bytes = 80 * kGiB,
                                 .pci_address = "0000:1" + std::to_string(index) + ":00.0"},
                         .free_bytes = 79 * kGiB,
                         .uncorrected_errors = 0});
  }
  return node;
}

/// Nodes with nothing wrong, that have reached each other and sent 1 GB/s.
inline Observations healthy_nodes(int count) {
  Observations seen{.num_nodes = count, .seconds = 1.25};
  for (int from = 0; from < count; ++from) {
    seen.nodes.push_back(healthy_node(from));
    for (int to = 0; to < count; ++to) {
      if (to == from) continue;
      seen.connections.push_back({.from = from, .to = to, .clock_offset = 0.0001, .round_trip = 0.0002});
      seen.transfers.push_back({.from = from, .to = to, .bytes_per_second = 1e9});
    }
  }
  return seen;
}

}  // namespace acc::test
