// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "acc/base/event_loop.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/callback_guard.hpp"
#include "acc/rendezvous/coordinator.hpp"
#include "acc/rendezvous/node_connection.hpp"
#include "acc/rendezvous/node_listener.hpp"
#include "acc/rendezvous/rendezvous_backend.hpp"
#include "acc/rendezvous/succession.hpp"
#include "acc/store/server.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// What a node needs to lead a job: the coordinator with its connections, the backend, and the store in which
/// this launcher's nodes and torchrun's meet. Node 0 is the node itself.
class Host {
 public:
  /// Handles messages to node 0.
  using Deliver = std::function<void(const NodeMessage&)>;
  /// Serves a store of its own on `addresses`. Nodes connect to `node_port`. Throws Error{system} if the port
  /// is taken.
  Host(net::io_context& loop, const LaunchPlan& plan, Deliver deliver,
       const std::vector<std::string>& addresses, std::uint16_t port, std::uint16_t node_port,
       const Succession& succession);
  /// Uses a store that another launcher serves, or a file; no node connects to this one.
  Host(net::io_context& loop, const LaunchPlan& plan, Deliver deliver, std::unique_ptr<Store> store);
  ~Host();

  /// Takes over the connection of a node, and the messages that it has sent so far.
  void adopt(const std::shared_ptr<Member>& member);
  void on_message(const NodeMessage& message);
  void on_hello(const NodeInfo& info, const NodeHistory& history);

  const Coordinator& coordinator() const { return *coordinator_; }
  Coordinator& coordinator() { return *coordinator_; }
  /// Serves the store of the job, so that the other nodes of acc connect to it.
  bool serves_store() const { return server_ != nullptr; }
  /// Whether the job's own store says that the job runs at `address`.
  bool is_running_at(const std::string& address) const;
  /// Tells all waiting nodes what they wait for.
  void send_waiting(const std::string& text);

  /// Calls `on_alone` when every other node has left and the backend knows of the end of the job, or after
  /// `timeout`.
  void wait_until_alone(std::chrono::milliseconds timeout, std::function<void()> on_alone);
  /// Tells every node that another one is the coordinator, and whether of a job that was begun anew; returns
  /// the store, which names the coordinator to later nodes.
  std::unique_ptr<StoreServer> move_to(const StoreAddress& coordinator, bool is_another_job);
  /// Node 0 leaves: tells the others that the job is over, if they cannot go on without it, and closes all
  /// connections at once, so that they notice. The backend is not closed, as with torchrun.
  void leave(const Leave& leave);

 private:
  void make_coordinator(const Succession& succession, int node_port);
  void take(const Member& member);
  void wait_for_holder(Coordinator::NodeId holder, const std::shared_ptr<Member>& claimant);
  void dismiss_earlier(Coordinator::NodeId node, const NodeMessage& last_message);
  void wait_for_bytes(Coordinator::NodeId holder, std::optional<RunningClock::time_point> first_heard = {});
  void on_holder_heard(Coordinator::NodeId holder);
  void on_holder_lost(Coordinator::NodeId holder);
  void drop();
  void send(Coordinator::NodeId node, const NodeMessage& message);
  void connection_lost(Coordinator::NodeId node, const ConnectionLoss& loss);
  void remove(Coordinator::NodeId node, const ConnectionLoss& loss);
  void forget_workers();
  void serve_all();
  void serve_round();
  void check_alone();
  bool agents_remain() const;
  void check_alone_later();

  net::io_context& loop_;
  const LaunchPlan& plan_;
  Deliver deliver_;
  std::unique_ptr<StoreServer> server_ = {};
  std::unique_ptr<Store> store_ = {};
  std::unique_ptr<RendezvousBackend> backend_ = {};
  std::optional<Coordinator> coordinator_ = {};
  std::map<Coordinator::NodeId, std::shared_ptr<NodeConnection>> connections_ = {};
  Coordinator::NodeId next_id_ = 1;
  /// Nodes that are taken in when another one has ended, by that one.
  std::map<Coordinator::NodeId, std::vector<std::shared_ptr<Member>>> claimants_ = {};
  RunningTimer survivors_;
  RunningTimer timeout_;
  net::steady_timer poll_;
  RunningClock::time_point agents_deadline_ = {};
  std::function<void()> on_alone_ = {};
  bool backend_closed_ = false;
  CallbackGuard guard_ = {};
};

/// Checks that a process that may open `max_files` files can host the job of `plan`. Throws Error{system} if
/// it cannot hold a connection to each node that the job needs. Returns a warning if the connections of all
/// workers to their store may not fit; empty: they do.
std::string check_open_files(std::uint64_t max_files, const LaunchPlan& plan);

/// The key whose value says where nodes of `acc` connect: a port of the host, or `host:port`.
std::string coordinator_key(const std::string& run_id);
/// The key by which the coordinator of a running job tells a new host its address, `host:port`.
std::string running_key(const std::string& run_id);

}  // namespace acc::launcher
