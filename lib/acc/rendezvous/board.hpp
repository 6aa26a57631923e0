// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/plan/round.hpp"

namespace acc {

/// A node of ours as every other launcher sees it.
struct OwnNode {
  std::string addr = {};
  int pid = 0;
  int local_id = 0;
  /// Static rendezvous only.
  int node_rank = 0;
  std::string role = "default";
  int local_world_size = 1;
  /// Where it would serve the workers' store if it became group rank 0.
  std::uint16_t store_port = 0;

  bool operator==(const OwnNode&) const = default;
};

/// Where nodes of all launchers meet: torchrun's keys in a store. It stands for a set of our nodes, which
/// changes while it runs.
class Board {
 public:
  struct Events {
    /// A round is complete. Nodes of ours that are not in it are spares.
    std::function<void(const std::vector<std::pair<OwnNode, Round>>&)> on_round;
    /// The round is over: a node waits to join, or one that is not ours has left.
    std::function<void()> on_change;
    /// The job was closed by another node.
    std::function<void()> on_closed;
    std::function<void(const Error&)> on_error;
    /// Who is missing, for people.
    std::function<void(const std::string&)> on_missing;
  };

  Board() = default;
  virtual ~Board() = default;
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  virtual void add(const OwnNode& node) = 0;
  virtual void remove(const OwnNode& node) = 0;
  /// All nodes of ours want another round.
  virtual void next_round() = 0;
  /// The job is over for all.
  virtual void close() = 0;
  /// All workers of our nodes have succeeded; `done` when those of all other nodes have, or after 300 s.
  virtual void finish(std::function<void()> done) = 0;
};

}  // namespace acc
