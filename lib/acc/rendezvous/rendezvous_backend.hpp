// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// A node of ours as every other launcher sees it. On the backend it is the same node as long as address, pid
/// and local id (c10d), or its rank (static), are.
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
/// changes while it runs. Events come from the loop, never from within a call, and none after its end. It may
/// be destroyed in any of them.
class RendezvousBackend {
 public:
  using Rounds = std::vector<std::pair<OwnNode, Round>>;

  struct Events {
    /// A round is complete. Nodes of ours that are not in it are spares. If one of ours is group rank 0, no
    /// other launcher's node gets its ranks before this returns: no worker of the round before lives then,
    /// and none of this one, so the store that they share can be emptied.
    std::function<void(const Rounds&)> on_round = {};
    /// Once after each on_round: the round is over, a node waits to join, or one that is not ours has left.
    std::function<void()> on_change = {};
    /// Once: the job is closed, by another node or as close() asked; after close() also when nothing can be
    /// written any more.
    std::function<void()> on_closed = {};
    /// Once, and the last event: the nodes cannot meet any more.
    std::function<void(const Error&)> on_error = {};
    /// Who is missing, for people, whenever that changes.
    std::function<void(const std::string&)> on_missing = {};
  };

  RendezvousBackend() = default;
  virtual ~RendezvousBackend() = default;
  RendezvousBackend(const RendezvousBackend&) = delete;
  RendezvousBackend& operator=(const RendezvousBackend&) = delete;

  /// The node takes part, or is told anew. The first round is wanted from the beginning.
  virtual void add(const OwnNode& node) = 0;
  virtual void remove(const OwnNode& node) = 0;
  /// All nodes of ours want another round, and none of them has a worker any more.
  virtual void next_round() = 0;
  /// The job is over for all.
  virtual void close() = 0;
  /// All workers of our nodes have succeeded; `done` when those of all other nodes have, or when that does
  /// not come to be known within 300 s.
  virtual void finish(std::function<void()> done) = 0;
};

/// Calls an event of a backend, if somebody handles it. A copy of it, as the backend may end in it: after
/// this it touches nothing of its own.
template <class... Values>
void notify(std::function<void(Values...)> event, std::type_identity_t<Values>... values) {
  if (event) event(values...);
}

/// The backend that the plan asks for, at `store`, which outlives it.
std::unique_ptr<RendezvousBackend> make_backend(boost::asio::io_context& loop, const LaunchPlan& plan,
                                                Store& store, RendezvousBackend::Events events);

}  // namespace acc::launcher
