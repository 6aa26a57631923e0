// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "acc/rendezvous/rendezvous_state.hpp"

namespace acc::launcher {

/// torchrun's dynamic rendezvous (torch 2.4 to 2.15) for a set of own nodes that changes while it runs. Pure:
/// the state as it was read goes in, the state to write comes out.
///
/// A node of others is dead when its heartbeat has not changed for as long as torchrun allows, by our own
/// clock that never jumps: how far the wall clocks of machines are apart does not matter to us, and what we
/// write is never older than what others wrote, so that it does not matter to them either.
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
    /// For the first who writes a time: torch 2.6 and later, true.
    bool times_have_zone = true;
  };

  /// The same moment on both clocks.
  struct Now {
    std::chrono::steady_clock::time_point steady = {};
    WallTime wall = {};
  };

  enum class Outlook {
    idle,       ///< no own node wants anything
    joining,    ///< a round with an own node in it is yet to come
    spare,      ///< every own node is surplus in a round of others
    in_round,   ///< the round is complete, and an own node is in it
    changed,    ///< it was, but somebody waits to join or is gone: next_round() is called for
    closed,     ///< the job is over for all nodes
    timed_out,  ///< too few nodes came
  };

  struct Step {
    /// What was read, without the dead.
    RendezvousState state = {};
    /// To be written in place of what was read; then step() is due with it. The outlook counts without only.
    bool write = false;
    Outlook outlook = Outlook::idle;
    /// When something may be due though nobody wrote.
    std::chrono::steady_clock::time_point next = {};
  };

  explicit C10dMachine(const Settings& settings);

  /// Takes part from now on; those who came first are the first to be let in.
  void add(const RendezvousNode& node);
  /// Takes part no more.
  void remove(const RendezvousNode& node);
  /// All own nodes leave the round that they are in, and join the next. If there was nobody else in it, there
  /// is no last call: all that are known are here at once.
  void next_round(Now now);
  /// The job ends for all nodes.
  void close() { closing_ = true; }

  Step step(const RendezvousState& read, Now now);

  const std::vector<RendezvousNode>& own() const { return own_; }

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Heartbeat {
    WallTime value = {};
    SteadyTime seen = {};  // for the first time
  };

  void observe(const RendezvousState& read, Now now);
  RendezvousState without_dead(RendezvousState state, Now now) const;
  void leave(RendezvousState& state) const;
  void enter(RendezvousState& state, const RendezvousNode& node) const;
  void complete_if_due(RendezvousState& state, Now now) const;
  bool own_heartbeat_due(const RendezvousState& state, Now now) const;
  Outlook look(const RendezvousState& state, Now now);
  bool anyone_in(const RendezvousState& state) const;
  void drop_participant(RendezvousState& state, const RendezvousNode& node) const;
  void drop(RendezvousState& state, const RendezvousNode& node) const;

  Settings settings_;
  std::vector<RendezvousNode> own_ = {};
  std::vector<RendezvousNode> leaving_ = {};
  bool wanted_ = false;  // a round
  bool closing_ = false;
  std::optional<std::int64_t> left_ = {};    // the round that own nodes must be in no more
  std::optional<std::int64_t> joined_ = {};  // the round that they are in ...
  std::size_t joined_nodes_ = 0;             // ... and its size
  bool joined_alone_ = false;                // ... and whether no others are in it
  bool needs_no_call_ = false;               // nobody but own nodes could come back
  SteadyTime join_deadline_ = {};
  std::map<RendezvousNode, Heartbeat> heartbeats_ = {};
  std::optional<WallTime> deadline_ = {};  // of the last call, as read, ...
  SteadyTime deadline_seen_ = {};          // ... and since when
  std::chrono::microseconds ahead_ = {};   // of our wall clock, the fastest of the others
};

}  // namespace acc::launcher
