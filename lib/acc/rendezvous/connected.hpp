// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "acc/base/event_loop.hpp"
#include "acc/rendezvous/node_connection.hpp"
#include "acc/rendezvous/node_state.hpp"

namespace acc::launcher {

/// The node is connected to the coordinator, introduces itself, asks for rounds and takes part in them. After
/// a loss the coordinator counts as found only when a round begins: until then the node still has the other
/// candidates. Leads to CoordinatorLost or AskingLater.
class Connected : public NodeState {
 public:
  struct Events {
    std::function<void(const ConnectionLoss&)> on_lost = {};
    /// The other nodes have gone on without this one.
    std::function<void(const std::string& reason)> on_dropped = {};
    /// Another node is the coordinator.
    std::function<void(const StoreAddress&, bool is_another_job)> on_moved = {};
    /// All places of the job are taken.
    std::function<void()> on_full = {};
  };

  /// The caller starts `connection`. `candidates`: see NodeState::candidates().
  Connected(NodeContext& node, std::shared_ptr<NodeConnection> connection,
            std::optional<Candidates> candidates, Events events);
  ~Connected() override;

  const char* name() const override { return "connected"; }
  void start() override;
  void send(const NodeMessage& message) override { connection_->send(message); }
  void ask_for_round() override;
  void on_member(const std::shared_ptr<Member>& member) override;
  void on_round() override;
  std::string missing() const override { return missing_because("it answered"); }
  bool announce_waiting(const std::string&) override { return candidates_.has_value(); }
  void leave(const Leave& leave, bool is_early, std::function<void()> on_left) override;
  std::optional<Candidates> candidates() const override { return candidates_; }
  std::string coordinator_address() const override { return connection_->peer_address(); }

 private:
  void on_introduced(bool is_proven);
  void note_asked();
  void on_message(const NodeMessage& message);
  void on_lost(const ConnectionLoss& loss);
  void redirect_pending_members_later();

  std::shared_ptr<NodeConnection> connection_;
  std::optional<Candidates> candidates_;
  Events events_;
  bool is_introduced_ = false;
  net::steady_timer redirect_;
};

}  // namespace acc::launcher
