// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/coordinator.hpp"
#include "acc/rendezvous/node_connection.hpp"
#include "acc/rendezvous/node_listener.hpp"
#include "acc/rendezvous/rendezvous_backend.hpp"
#include "acc/rendezvous/succession.hpp"
#include "acc/store/server.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// A node as the centre of a job: the coordinator with its connections, the backend, and the store on which
/// both this launcher's nodes and torchrun's meet. Node 0 is the node itself.
class Host {
 public:
  /// What node 0 is sent.
  using Deliver = std::function<void(const NodeMessage&)>;
  /// With a store of its own, on `addresses`. Nodes connect to `node_port`. Throws Error{system} when the
  /// port is taken.
  Host(boost::asio::io_context& loop, const LaunchPlan& plan, Deliver deliver,
       const std::vector<std::string>& addresses, std::uint16_t port, std::uint16_t node_port,
       const Succession& succession);
  /// At a store that another launcher hosts, or in a file; nobody connects to this node.
  Host(boost::asio::io_context& loop, const LaunchPlan& plan, Deliver deliver, std::unique_ptr<Store> store);
  ~Host();

  /// A node that has connected, and what it has sent so far.
  void adopt(const Member& member);
  void on_message(const NodeMessage& message);
  void on_hello(const NodeInfo& info, const NodeHistory& history);

  const Coordinator& coordinator() const { return *coordinator_; }
  Coordinator& coordinator() { return *coordinator_; }
  /// Whether the job's own store says that the job runs at `place`.
  bool is_running_at(const std::string& place) const;
  /// Tells all who wait what they wait for.
  void send_waiting(const std::string& text);

  /// Calls `gone` when every other node has left and the backend knows of the end of the job, or after
  /// `timeout`.
  void wait_until_alone(std::chrono::milliseconds timeout, std::function<void()> gone);
  /// Tells every node that another one is the coordinator, and leaves a store that tells it to those who come
  /// later.
  std::unique_ptr<StoreServer> move_to(const StoreAddress& coordinator);
  /// Node 0 goes: tells the others that the job is over, if they cannot go on without it, and drops all
  /// connections at once, so that they see that it is gone. The backend is left open, as torchrun leaves it.
  void leave(const Leave& leave);

 private:
  void make_coordinator(const Succession& succession, int node_port);
  void drop();
  void send(Coordinator::NodeId node, const NodeMessage& message);
  void connection_lost(Coordinator::NodeId node, const ConnectionLoss& loss);
  void forget_workers();
  void serve_all();
  void serve_round();
  void check_alone();
  bool agents_remain() const;
  void look_again();

  boost::asio::io_context& loop_;
  const LaunchPlan& plan_;
  Deliver deliver_;
  std::unique_ptr<StoreServer> server_ = {};
  std::unique_ptr<Store> store_ = {};
  std::unique_ptr<RendezvousBackend> backend_ = {};
  std::optional<Coordinator> coordinator_ = {};
  std::map<Coordinator::NodeId, std::shared_ptr<NodeConnection>> connections_ = {};
  Coordinator::NodeId next_id_ = 1;
  boost::asio::steady_timer timeout_;
  boost::asio::steady_timer look_;
  std::chrono::steady_clock::time_point agents_until_ = {};
  std::function<void()> alone_ = {};
  bool backend_closed_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// The key under which a host says where nodes of `acc` connect: a port, or `host:port`.
std::string coordinator_key(const std::string& run_id);
/// The key under which the coordinator of a running job says so to a new host: `host:port`.
std::string running_key(const std::string& run_id);

}  // namespace acc::launcher
