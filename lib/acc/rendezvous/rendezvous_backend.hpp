// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/event_loop.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// A node of this launcher, as other launchers see it. A backend identifies it by address, pid and local id
/// (c10d), or by its rank (static).
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

/// Where nodes of all launchers meet: torchrun's keys in a store. It represents a set of our nodes, which
/// changes while it runs. Events come from the event loop, never during a call, and never after its end. It
/// may be destroyed in any of them.
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
    /// Once: the job is closed, by another node or by close(); after close() also when the store is lost.
    std::function<void()> on_closed = {};
    /// Once, and the last event: the nodes cannot meet any more.
    std::function<void(const Error&)> on_error = {};
    /// What our nodes wait for, for the user, whenever that changes. `spare`: for a place in the job, which
    /// has a round without them, however long that takes.
    std::function<void(const std::string&, bool spare)> on_missing = {};
  };

  RendezvousBackend() = default;
  virtual ~RendezvousBackend() = default;
  RendezvousBackend(const RendezvousBackend&) = delete;
  RendezvousBackend& operator=(const RendezvousBackend&) = delete;

  /// Adds or updates a node. The first round is requested from the beginning.
  virtual void add(const OwnNode& node) = 0;
  virtual void remove(const OwnNode& node) = 0;
  /// All nodes of ours want another round, and none of them has a worker any more.
  virtual void next_round() = 0;
  /// The job is over for all, unless a round of others runs.
  virtual void close() = 0;
  /// All workers of our nodes have succeeded. Calls `on_done` when those of all other nodes have, or after
  /// 300 s.
  virtual void finish(std::function<void()> on_done) = 0;
};

/// Calls the handler of an event, if there is one. It is a copy, since it may destroy the backend, which must
/// use nothing of its own after this.
template <class... Values>
void notify(std::function<void(Values...)> event, std::type_identity_t<Values>... values) {
  if (event) event(values...);
}

/// The backend that the plan asks for, in `store`, which outlives it.
std::unique_ptr<RendezvousBackend> make_backend(net::io_context& loop, const LaunchPlan& plan, Store& store,
                                                RendezvousBackend::Events events);

}  // namespace acc::launcher
