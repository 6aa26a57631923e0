// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/event_loop.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/coordinator_lost.hpp"
#include "acc/rendezvous/node_state.hpp"
#include "acc/rendezvous/rendezvous.hpp"
#include "acc/rendezvous/searching.hpp"
#include "acc/store/server.hpp"

namespace acc::launcher {

/// A node of a job of several machines. It is in one state at a time, and each has its own file:
///
///     Idle ── join() ──▶ Searching ─┬─▶ Hosting                     this node leads the job
///                          ▲        └─▶ Connected                   another does
///          AskingLater ────┘             │  │ ▲
///              ▲                         │  │ │  lost before the first round,
///              └─────────────────────────┘  ▼ │  or all places taken
///                                   CoordinatorLost ──▶ Succeeding  this node leads the job on
///                                           ▲                │
///                                           └────────────────┘      another does after all
///
/// This class decides which state follows which, and sends the events to the agent.
class ClusterNode : public Rendezvous {
 public:
  /// Throws Error when the plan's secret cannot be read.
  ClusterNode(net::io_context& loop, const LaunchPlan& plan);

  void join() override;
  void fail(const RoundOver& failure) override;
  void finish() override;
  void announce_end(int signal) override;
  void stop_job(int code) override;
  std::string stops_alone() const override;
  bool tell_progress(const std::vector<RankProgress>& ranks) override;
  void tell_slow(const std::vector<SlowRank>& ranks) override;
  std::string want_ranks() override;
  void report_ranks(const std::string& ranks) override;
  std::string tell_hang(const NodeHang& hang) override;
  void leave(const std::string& reason, int code) override;
  std::string state() const override { return state_->name(); }

 private:
  // The states.
  void search(Searching::Start start, const std::string& reason);
  void search_later(Searching::Start start, const std::string& reason);
  void connect(std::shared_ptr<NodeConnection> connection, std::optional<Candidates> candidates,
               const std::string& reason);
  void host(std::unique_ptr<Host> new_host, const std::string& reason);
  void look_for_job(CoordinatorLost::FirstStep first_step, Candidates candidates, const std::string& reason);
  void succeed(const std::string& reason);
  void wait_for_room();
  void give_up(const std::string& reason, int code);
  void enter(std::unique_ptr<NodeState> next, const std::string& reason);

  // How a node loses its coordinator.
  void on_coordinator_lost(const ConnectionLoss& loss);
  void on_dropped(const std::string& reason);
  void begin_looking(bool was_closed, const std::string& reason);
  void on_redirected(const StoreAddress& coordinator, bool is_another_job);
  void move_to(const StoreAddress& coordinator, const std::string& reason, bool is_another_job = false);
  bool host_again();
  void redirect_later_nodes(const StoreAddress& coordinator);

  // What others send.
  void on_message(const NodeMessage& message);
  void on_rank_message(const NodeMessage& message);
  void on_round_begins(const RoundBegins& message);
  void on_round_ends(const RoundOver& verdict);
  void on_member(const std::shared_ptr<Member>& member);
  void on_claim(const Member& claimant);
  EtcdCoordinatorKey::Loss on_key_lost(const std::string& address, bool has_lapsed);

  std::string no_ranks_reason(int protocol) const;
  void end_round(const std::string& reason);
  void begin_join_timeout();
  void set_spare(bool spare);
  void remind_later();
  void remind();

  NodeContext node_;
  CallbackGuard guard_ = {};
  RunningTimer reminder_;
  bool leaving_ = false;
  /// A round runs without this node: no timeout counts.
  bool is_spare_ = false;
  bool told_no_room_ = false;
  /// How the job has ended, unless all workers have succeeded.
  std::optional<RoundOver> end_ = {};
  /// The store of this node after it has yielded as the host: tells later nodes where the coordinator is.
  std::unique_ptr<StoreServer> redirect_ = {};
  std::unique_ptr<NodeState> state_;
  /// States that were left, destroyed later: the caller may be one of them.
  std::vector<std::unique_ptr<NodeState>> retired_states_ = {};
};

}  // namespace acc::launcher
