// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "acc/base/event_loop.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/rendezvous/rendezvous_state.hpp"

namespace acc::launcher {

/// torchrun's dynamic rendezvous (torch 2.4 to 2.15) for a set of own nodes that changes while it runs. Pure:
/// the state as it was read goes in, the state to write comes out.
///
/// Another launcher's node is dead when its heartbeat has not changed for torchrun's keep-alive timeout,
/// measured by the local RunningClock. So a skew between the machines' wall clocks does not matter here;
/// nor does it to the others, since no time that is written is much older than what a live node has written.
class C10dMachine {
 public:
  struct Settings {
    std::size_t min_nodes = 1;
    std::size_t max_nodes = 1;
    std::chrono::milliseconds join_timeout = std::chrono::seconds(600);
    /// How long to wait for more than `min_nodes`.
    std::chrono::milliseconds last_call = std::chrono::seconds(30);
    std::chrono::milliseconds keep_alive_interval = std::chrono::seconds(5);
    int keep_alive_max_attempt = 3;
    /// Used while the state has no times; true for torch 2.6 and later.
    bool times_have_zone = true;
  };

  /// The same moment on each clock.
  struct Moment {
    RunningClock::time_point running = {};
    net::steady_clock::time_point steady = {};
    WallTime wall = {};
  };

  enum class Status {
    idle,       ///< no own node wants a round
    joining,    ///< a round with an own node in it is yet to come
    spare,      ///< every own node is surplus in a round of others
    in_round,   ///< the round is complete, and an own node is in it
    changed,    ///< it was, but a node waits to join or is gone: call next_round()
    closed,     ///< the job is over for all nodes
    timed_out,  ///< too few nodes came
  };

  struct Step {
    /// The state that was read, without dead nodes.
    RendezvousState state = {};
    /// `state` must be written in place of what was read, and step() called with it; `status` is set
    /// otherwise.
    bool write = false;
    Status status = Status::idle;
    /// When to call step() again even if nobody has written.
    RunningClock::time_point next = {};
  };

  explicit C10dMachine(const Settings& settings);

  /// Nodes join in the order in which they are added.
  void add(const RendezvousNode& node);
  /// Takes part no more.
  void remove(const RendezvousNode& node);
  /// All own nodes leave their round and join the next. If no other nodes were in it, the last call is
  /// skipped: all known nodes are here.
  void next_round(Moment now);
  /// All workers of own nodes have succeeded: nodes that the others have dropped stay out of their next
  /// round, which would wait for them.
  void finish() { finishing_ = true; }
  /// The job ends for all nodes, unless a round runs in which no own node is, or has run where none has ever
  /// been in one: then only the own nodes leave.
  void close() { closing_ = true; }

  Step step(const RendezvousState& stored_state, Moment now);

  /// How many nodes it represents.
  std::size_t nodes() const { return own_nodes_.size(); }

 private:
  using RunningTime = RunningClock::time_point;
  struct Heartbeat {
    WallTime value = {};
    Moment read_time = {};                // when `value` was first read, ...
    std::chrono::microseconds skew = {};  // ... and how far it was ahead of our wall clock
  };

  void observe(const RendezvousState& stored_state, Moment now);
  RendezvousState without_dead(RendezvousState state, Moment now) const;
  void leave(RendezvousState& state) const;
  void enter(RendezvousState& state, const RendezvousNode& node) const;
  void complete_if_due(RendezvousState& state, Moment now) const;
  bool own_heartbeat_due(const RendezvousState& state, Moment now) const;
  Status update_status(const RendezvousState& state, Moment now);
  bool lacks_nodes(const RendezvousState& state) const;
  bool anyone_in(const RendezvousState& state) const;
  void drop_participant(RendezvousState& state, const RendezvousNode& node) const;
  void drop(RendezvousState& state, const RendezvousNode& node) const;

  Settings settings_;
  std::map<RendezvousNode, std::uint64_t> own_nodes_ = {};  // and when each was added, ...
  std::map<std::uint64_t, RendezvousNode> arrivals_ = {};   // ... and in this order
  std::set<RendezvousNode> leaving_ = {};
  bool wants_round_ = false;
  bool spare_ = false;  // as last read
  bool finishing_ = false;
  bool closing_ = false;
  std::optional<std::int64_t> left_round_ = {};    // the round that own nodes have left
  std::optional<std::int64_t> joined_round_ = {};  // the round that they are in, ...
  std::size_t joined_nodes_ = 0;                   // ... its size, ...
  bool joined_alone_ = false;                      // ... and whether no others are in it
  bool skips_last_call_ = false;                   // only own nodes can come back
  RunningTime join_deadline_ = {};
  std::map<RendezvousNode, Heartbeat> heartbeats_ = {};
  std::optional<WallTime> deadline_ = {};  // of the last call, as read ...
  RunningTime deadline_read_ = {};         // ... and when it was first read
  std::chrono::microseconds skew_ = {};    // how far the times of others are ahead of our wall clock
};

}  // namespace acc::launcher
