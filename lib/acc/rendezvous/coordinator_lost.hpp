// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "acc/rendezvous/dead_node_probe.hpp"
#include "acc/rendezvous/node_connection.hpp"
#include "acc/rendezvous/node_state.hpp"
#include "acc/store/client.hpp"
#include "acc/store/connecting.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {

/// The node has lost the coordinator. It asks in turn at each address where the job may be, until one
/// answers; meanwhile other members of the last round may take this node for the next coordinator. Leads to
/// Connected or, when the larger part of the round is here, to Succeeding.
class CoordinatorLost : public NodeState {
 public:
  struct Events {
    /// A node answers at `address`; `candidates` remain to be asked if it does not lead the job.
    std::function<void(std::shared_ptr<NodeConnection>, const StoreAddress& address, Candidates candidates)>
        on_found = {};
    /// This node is to lead the job on.
    std::function<void(const std::string& reason)> on_succession = {};
    /// The coordinator that the endpoint names has ended. Returns whether this node leaves the state: to host
    /// at the endpoint again.
    std::function<bool()> on_outdated = {};
  };
  /// What comes first.
  enum class FirstStep {
    all,    ///< all addresses where the job may be, from the beginning
    next,   ///< only the next candidate: the job should be there
    pause,  ///< a pause: a candidate has just turned out to be wrong
  };

  CoordinatorLost(NodeContext& node, FirstStep first_step, Candidates candidates, Events events);
  ~CoordinatorLost() override;

  const char* name() const override { return "coordinator lost"; }
  void start() override;
  void on_member(const std::shared_ptr<Member>& member) override;
  std::optional<Candidates> candidates() const override { return candidates_; }

 private:
  void ask_all();
  void ask_next();
  void ask_later();
  void ask(const StoreAddress& address, std::function<void()> on_failed);
  void on_connected(const StoreAddress& address, net::tcp::socket socket,
                    std::function<void(const std::string& reason, bool was_refused)> on_failed);
  void ask_endpoint();
  void ask_store();
  void on_coordinator_told(const std::string& text);
  void succeed();
  StoreAddress take_next();

  FirstStep first_step_;
  Candidates candidates_;
  Events events_;
  net::steady_timer retry_;
  std::shared_ptr<Connecting> connecting_ = {};
  /// Connection to a candidate that has not answered yet.
  std::shared_ptr<NodeConnection> trial_ = {};
  /// Of the successors that are not asked for the job.
  DeadNodeProbe later_successors_;
  std::unique_ptr<StoreClient> client_ = {};
};

}  // namespace acc::launcher
