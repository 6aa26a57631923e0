// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "acc/rendezvous/c10d_backend.hpp"
#include "acc/rendezvous/callback_guard.hpp"
#include "acc/rendezvous/rendezvous_state.hpp"
#include "acc/rendezvous/store_meeting.hpp"
#include "acc/rendezvous/torch_agents.hpp"

namespace acc::launcher {

/// Where the workers of a round find their store.
struct C10dMaster {
  std::string addr = {};
  std::uint16_t port = 0;
  /// Otherwise worker 0 does.
  bool agent_serves = true;

  bool operator==(const C10dMaster&) const = default;
};

/// A complete round of torchrun's dynamic rendezvous with own nodes in it: exchanges ranks with the other
/// nodes, finds the master, and reports the round to the meeting's on_round.
class C10dRound {
 public:
  enum class Stage {
    meeting,   ///< not reported yet
    reported,  ///< own nodes have their ranks
    over,      ///< end() was called
  };

  /// `own_nodes`: all of them. `known_master`: that of the round before. `meeting` and `options` outlive it.
  C10dRound(StoreMeeting& meeting, const C10dBackendOptions& options, const RendezvousState& state,
            const std::map<RendezvousNode, OwnNode>& own_nodes, std::optional<C10dMaster> known_master);
  ~C10dRound() { meeting_.exchange.reset(); }
  C10dRound(const C10dRound&) = delete;
  C10dRound& operator=(const C10dRound&) = delete;

  /// Fails the meeting, maybe at once, if the nodes cannot agree.
  void start();
  /// The round is over, or is not wanted any more: nothing is reported after this.
  void end();

  Stage stage() const { return stage_; }
  /// The one that this round has found, or the one that was known.
  const std::optional<C10dMaster>& master() const { return master_; }
  /// Whether all its nodes are own ones.
  bool is_alone() const { return static_cast<int>(members_.size()) == num_nodes_; }
  ExitBarrier::Options exit_barrier() const;
  /// The keys with what own nodes, or node 0 for them, have told of their ranks in this round.
  std::vector<std::string> rank_keys() const;
  /// The keys with the master's address, if an own node has published it in this round.
  std::vector<std::string> master_keys() const;

 private:
  std::string prefix(std::int64_t round) const;
  C10dMaster own_master(const OwnNode& node) const;
  void find_master(std::int64_t round);
  void report(const C10dMaster& master);

  StoreMeeting& meeting_;
  const C10dBackendOptions& options_;
  std::int64_t number_;
  int num_nodes_;
  bool times_have_zone_;
  /// Own nodes of the round, and their ranks, by group rank.
  std::map<int, OwnNode> members_ = {};
  std::map<int, AssignedRanks> ranks_ = {};
  std::optional<C10dMaster> master_;
  Stage stage_ = Stage::meeting;
  CallbackGuard guard_ = {};
};

}  // namespace acc::launcher
