// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/board.hpp"
#include "acc/rendezvous/hub.hpp"
#include "acc/rendezvous/link.hpp"
#include "acc/rendezvous/link_listener.hpp"
#include "acc/store/server.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// A node as the centre of a job: the hub with its links, the board, and the store on which both this
/// launcher's nodes and torchrun's meet. Node 0 is the node itself.
class Host {
 public:
  /// What node 0 is told.
  using Deliver = std::function<void(const NodeMessage&)>;
  /// Where the job stands, when it is inherited.
  struct Inheritance {
    int rounds = 0;
    int restarts = 0;
    /// As Hub::Options has them.
    std::vector<NodeInfo> away = {};
    int dead_port = 0;
  };

  /// With a store of its own, on `addresses`. Nodes link to `link_port`. Throws Error{system} when the port
  /// is taken.
  Host(boost::asio::io_context& loop, const LaunchPlan& plan, Deliver deliver,
       const std::vector<std::string>& addresses, std::uint16_t port, std::uint16_t link_port,
       const Inheritance& inherited);
  /// At a store that another launcher hosts, or in a file; nobody links to this node.
  Host(boost::asio::io_context& loop, const LaunchPlan& plan, Deliver deliver, std::unique_ptr<Store> store);
  ~Host();

  /// A node that has linked, and what it said so far.
  void adopt(const Follower& follower);
  void take(const NodeMessage& message);
  void hello(const NodeInfo& info, const NodeHistory& history);

  const Hub& hub() const { return *hub_; }
  Hub& hub() { return *hub_; }
  /// Whether the job's own store says that the job runs at `place`.
  bool says_running_at(const std::string& place) const;
  /// Tells all who wait what they wait for.
  void tell_waiting(const std::string& text);

  /// Calls `gone` when every other node has left and the end of the job is on the board, or after `patience`.
  void wait_until_alone(std::chrono::milliseconds patience, std::function<void()> gone);
  /// Tells every node that another one is the hub, and leaves a store that tells it to those who come later.
  std::unique_ptr<StoreServer> move_to(const NodeInfo& hub);
  /// Node 0 goes: tells the others that the job is over, if they cannot go on without it, and drops all links
  /// at once, so that they see that it is gone. The board is left open, as torchrun leaves it.
  void leave(const Leave& leave);

 private:
  void make_hub(const Inheritance& inherited, int link_port);
  void drop();
  void send(Hub::NodeId node, const NodeMessage& message);
  void link_lost(Hub::NodeId node, const LinkLoss& loss);
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
  std::unique_ptr<Board> board_ = {};
  std::optional<Hub> hub_ = {};
  std::map<Hub::NodeId, std::shared_ptr<Link>> links_ = {};
  Hub::NodeId next_id_ = 1;
  boost::asio::steady_timer patience_;
  boost::asio::steady_timer look_;
  std::chrono::steady_clock::time_point agents_until_ = {};
  std::function<void()> alone_ = {};
  bool board_closed_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// The key under which a host says where nodes of `acc` link: a port, or `host:port`.
std::string hub_key(const std::string& run_id);
/// The key under which the hub of a running job says so to a new host: `host:port`.
std::string running_key(const std::string& run_id);

}  // namespace acc::launcher
