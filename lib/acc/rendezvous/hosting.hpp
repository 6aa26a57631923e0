// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "acc/rendezvous/dead_node_probe.hpp"
#include "acc/rendezvous/host.hpp"
#include "acc/rendezvous/node_connection.hpp"
#include "acc/rendezvous/node_state.hpp"
#include "acc/store/client.hpp"
#include "acc/store/connecting.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {

/// The node leads the job, or its own part of it at another launcher's store. It leaves this state only when
/// another node turns out to lead the job.
class Hosting : public NodeState {
 public:
  Hosting(NodeContext& node, std::unique_ptr<Host> host);

  const char* name() const override { return "hosting"; }
  void start() override;
  void send(const NodeMessage& message) override { host_->on_message(message); }
  void ask_for_round() override;
  void on_member(const std::shared_ptr<Member>& member) override;
  std::string missing() const override { return host_->coordinator().missing(); }
  bool announce_waiting(const std::string& text) override;
  bool end_job(const std::string& reason) override;
  void leave(const Leave& leave, bool is_early, std::function<void()> on_left) override;
  Host* host() override { return host_.get(); }

 private:
  bool has_room_for(const Member& member) const;
  void probe_absent_nodes_later();

  std::unique_ptr<Host> host_;
  net::steady_timer probe_timer_;
  DeadNodeProbe absent_nodes_probe_;
};

/// The node has replaced a coordinator that was lost, away from the endpoint. A host that died and came back
/// hosts at the endpoint again, where others find it; one that was only cut off has kept its part of the job.
/// So that there is one job and not two, this node tells such a host where it is, and joins it when it leads
/// the smaller part itself.
class Succeeding : public Hosting {
 public:
  /// Another node leads the job. `is_another_job`: it leads a round that knows nothing of the last one.
  using OnMoved =
      std::function<void(const StoreAddress& address, const std::string& reason, bool is_another_job)>;

  /// `members`: those that have not heard of this node yet.
  Succeeding(NodeContext& node, std::unique_ptr<Host> host, std::vector<StoreAddress> members,
             OnMoved on_moved);
  ~Succeeding() override;

  const char* name() const override { return "hosting as successor"; }
  void start() override;
  void on_member(const std::shared_ptr<Member>& member) override;
  void leave(const Leave& leave, bool is_early, std::function<void()> on_left) override;

 private:
  void look_later();
  void look_at_endpoint();
  void on_coordinator_told(const std::string& text);
  void introduce_to_next_member();
  void introduce_to(const StoreAddress& address);
  void claim(const StoreAddress& address, net::tcp::socket socket);
  void claim_key();

  std::vector<StoreAddress> members_;
  OnMoved on_moved_;
  net::steady_timer timer_;
  std::unique_ptr<StoreClient> client_ = {};
  std::shared_ptr<Connecting> connecting_ = {};
  /// Connection to a node that is told that this one leads the job.
  std::shared_ptr<NodeConnection> claim_ = {};
};

/// A host at a free port, for nodes that learn of it elsewhere than from the endpoint's store. Throws Error.
std::unique_ptr<Host> host_at_own_port(NodeContext& node, const Succession& succession);

}  // namespace acc::launcher
