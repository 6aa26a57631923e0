// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/plan/round.hpp"

namespace acc {

/// A node of this job that acc runs, as agents of all kinds are to know it.
struct OwnNode {
  std::string addr = {};  ///< how the other nodes reach it
  int pid = 0;
  int local_id = 0;   ///< tells nodes of the same pid apart
  int node_rank = 0;  ///< static rendezvous only
  std::string role = "default";
  int local_world_size = 1;
  /// Where this node serves the workers' store if it becomes rank 0.
  std::uint16_t store_port = 0;

  auto operator<=>(const OwnNode&) const = default;
};

/// Where the agents of a job meet, ours and torchrun's: it represents a set of own nodes, which may change
/// while it runs. On the caller's event loop; all events come from the loop, and none after the board's end.
/// A board may be destroyed in any event but `prepare`.
class Board {
 public:
  using Rounds = std::vector<std::pair<OwnNode, Round>>;

  struct Events {
    /// A round is complete: every own node that is in it, by rank. Own nodes that are not are spares.
    std::function<void(Rounds)> on_round = {};
    /// An own node is rank 0 of the coming round: its workers' store is to be emptied now, when no worker of
    /// the old round lives on any node and none of the new. Nobody gets ranks before `ready` is called.
    std::function<void(const OwnNode&, std::function<void()> ready)> prepare = {};
    /// Once per round: it is over, since somebody waits to join or a node is gone. next_round() is called
    /// for.
    std::function<void()> on_change = {};
    /// Once: the job is over for all nodes.
    std::function<void()> on_closed = {};
    /// Once, the last event: the nodes cannot meet.
    std::function<void(Error)> on_error = {};
    /// What is waited for, whenever that changes.
    std::function<void(const std::string&)> on_missing = {};
  };

  Board() = default;
  virtual ~Board() = default;
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// The node takes part from now on. Beside a running round it makes others change to a new one.
  virtual void add(OwnNode node) = 0;
  /// The node is lost or leaves.
  virtual void remove(const OwnNode& node) = 0;
  /// All own nodes have no workers any more, and want a round.
  virtual void next_round() = 0;
  /// Every own node that is in the round ended well: calls `done` when those of all others did (true), or
  /// when that does not come to be known within 300 s (false), which is no failure of this job.
  virtual void finish(std::function<void(bool all)> done) = 0;
  /// Ends the job for all nodes, and calls `done` when they can know.
  virtual void close(std::function<void()> done) = 0;
};

}  // namespace acc
