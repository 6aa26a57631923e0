// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "acc/rendezvous/node_connection.hpp"
#include "acc/rendezvous/node_state.hpp"

namespace acc::launcher {

/// The node is connected to the coordinator, introduces itself, asks for rounds and takes part in them. After
/// a loss the coordinator counts as found only when a round begins: until then the node still has the other
/// candidates. Leads to CoordinatorLost or AskingLater.
class Connected : public NodeState {
 public:
  struct Events {
    std::function<void(const ConnectionLoss&)> lost = {};
    /// The other nodes have gone on without this one.
    std::function<void(const std::string& why)> dropped = {};
    /// Another node is the coordinator.
    std::function<void(const StoreAddress&)> moved = {};
    /// All places of the job are taken.
    std::function<void()> full = {};
  };

  /// The caller starts `connection`. `others`: see NodeState::candidates().
  Connected(NodeContext& node, std::shared_ptr<NodeConnection> connection, std::optional<Candidates> others,
            Events events);
  ~Connected() override;

  const char* name() const override { return "connected"; }
  void start() override;
  void send(const NodeMessage& message) override { connection_->send(message); }
  void ask_for_round() override;
  void on_member(const std::shared_ptr<Member>& member) override;
  void on_round() override;
  std::string missing() const override { return missing_because("it answered"); }
  bool announce_waiting(const std::string&) override { return others_.has_value(); }
  void leave(const Leave& leave, bool early, std::function<void()> left) override;
  std::optional<Candidates> candidates() const override { return others_; }
  std::string coordinator_address() const override { return connection_->peer_address(); }

 private:
  void on_introduced(bool is_proven);
  void note_asked();
  void on_message(const NodeMessage& message);
  void on_lost(const ConnectionLoss& loss);
  void redirect_pending_members_later();

  std::shared_ptr<NodeConnection> connection_;
  std::optional<Candidates> others_;
  Events events_;
  bool introduced_ = false;
  boost::asio::steady_timer redirect_;
};

}  // namespace acc::launcher
