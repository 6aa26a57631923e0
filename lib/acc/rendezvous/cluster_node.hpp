// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/own_addresses.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/connecting.hpp"
#include "acc/rendezvous/etcd_gateway.hpp"
#include "acc/rendezvous/etcd_hub_key.hpp"
#include "acc/rendezvous/host.hpp"
#include "acc/rendezvous/job_secret.hpp"
#include "acc/rendezvous/link.hpp"
#include "acc/rendezvous/link_listener.hpp"
#include "acc/rendezvous/rendezvous.hpp"
#include "acc/rendezvous/reserved_port.hpp"
#include "acc/store/client.hpp"
#include "acc/store/server.hpp"

namespace acc::launcher {

/// A node of a job of several machines. It hosts the job where the endpoint is this machine, links to the
/// node that does otherwise, and meets the others by itself where the host is another launcher's. When the
/// hub is lost, the nodes that are left find a new one among themselves.
class ClusterNode : public Rendezvous {
 public:
  /// Throws Error when the plan's secret cannot be read.
  ClusterNode(boost::asio::io_context& loop, const LaunchPlan& plan);
  ~ClusterNode() override;

  void join() override;
  void fail(const RoundOver& failure) override;
  void finish() override;
  void leave(const std::string& why, int code) override;

 private:
  using Clock = std::chrono::steady_clock;

  void search();
  void resolve_endpoint(std::function<void(const std::vector<std::string>&)> done);
  void resolved(const std::vector<std::string>& addresses);
  bool try_to_host(const std::vector<std::string>& addresses);
  void dial();
  void dial_later();
  void store_answered(const std::optional<std::string>& hub);
  void meet_alone();
  void meet_in_file();
  void meet_at(std::unique_ptr<Store> store);
  void open_etcd(const std::vector<std::string>& addresses);
  void seek_hub_key();
  void host_at_own_port(const Host::Inheritance& inherited);
  void linked(boost::asio::ip::tcp::socket socket);
  void attach(std::shared_ptr<Link> link);
  void introduced(bool is_proven);
  void open_ports(const std::vector<std::string>& addresses);
  std::uint16_t open_workers_store();

  void take(const NodeMessage& message);
  void say(const NodeMessage& message);
  void told_to_wait(const Waiting& message);
  void begin(const RoundBegins& message);
  void ended(const RoundOver& over);
  void serve_round(const std::vector<std::string>& clients);

  void hub_lost(const LinkLoss& loss);
  void lost_again(const LinkLoss& loss);
  void seek_again(const LinkLoss& loss);
  void seek();
  void seek_next();
  void try_place(const StoreAddress& place, std::function<void()> failed);
  void note_dead(const StoreAddress& place, bool refused);
  bool hub_is_dead() const;
  bool is_dead(const StoreAddress& place) const;
  void seek_at_endpoint();
  void told_of_hub(const std::string& text);
  void seek_later();
  void stop_seeking();
  bool may_inherit_hub() const;
  void become_hub();
  void greeted(const std::shared_ptr<Follower>& follower);
  void redirect_followers_later();
  void redirect_followers();
  void claimed(const Follower& follower);
  bool has_place_for(const Follower& follower) const;
  bool may_follow(const Follower& follower) const;
  bool is_of_last_round(const Follower& follower) const;
  bool comes_from(const Link& link, const std::function<bool(const std::string&)>& is_place) const;
  void turn_away(const Follower& follower);
  void wait_for_place();
  void dropped(const std::string& why);
  void move_to(const NodeInfo& hub);
  void sign(const NodeInfo& hub);

  void watch_endpoint();
  void endpoint_answered(const std::string& hub);
  void tell_next_member();
  void claim_endpoint(const StoreAddress& place);
  void claim_from(const StoreAddress& place, boost::asio::ip::tcp::socket socket);
  void claim_hub_key();
  void hub_key_lost(const std::string& place);

  std::chrono::milliseconds connect_timeout() const;
  std::chrono::milliseconds node_timeout() const;
  bool survives_loss() const;

  void give_up(const std::string& why, int code);
  void wait_for_round();
  void remind();
  void ask_for_round();
  NodeHistory history() const;
  int port_of_hub() const;
  NodeInfo introduce() const;
  std::string endpoint() const;
  std::string own_place() const;
  bool is_etcd() const { return wanted_.backend == RendezvousBackend::etcd; }

  boost::asio::io_context& loop_;
  const LaunchPlan& plan_;
  const RendezvousPlan& wanted_;
  const OwnNames own_;
  const JobSecret secret_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::steady_timer reminder_;
  boost::asio::steady_timer redirect_;
  boost::asio::steady_timer watch_;

  // This node's own ports, once it is known where to listen.
  std::string addr_ = {};
  std::vector<std::string> listen_addresses_ = {};
  std::unique_ptr<LinkListener> links_ = {};
  std::unique_ptr<StoreServer> workers_store_ = {};
  /// Where worker 0 serves the store, when no agent does.
  std::optional<ReservedPort> workers_port_ = {};
  /// Nodes of torchrun were told where it is.
  bool torchrun_knows_store_ = false;

  // One of them leads to the hub: a host here, or a link; a client while a host is looked for.
  std::unique_ptr<StoreClient> client_ = {};
  std::shared_ptr<Connecting> connecting_ = {};
  std::shared_ptr<Link> link_ = {};
  bool introduced_ = false;
  /// To a node that may lead to the hub, until it is heard.
  std::shared_ptr<Link> trial_ = {};
  /// To another host, which is told that the job runs already.
  std::shared_ptr<Link> claim_ = {};
  std::unique_ptr<Host> host_ = {};
  /// The store of a host that has yielded: it says where the hub is.
  std::unique_ptr<StoreServer> signpost_ = {};

  // etcd says who hosts.
  std::unique_ptr<EtcdGateway> etcd_ = {};
  std::unique_ptr<EtcdHubKey> hub_key_ = {};
  /// Where the hub is, or was, that this node links to.
  std::string hub_place_ = {};

  enum class Search { none, host, again } search_ = Search::none;
  bool wants_round_ = false;
  bool in_round_ = false;
  bool over_ = false;
  bool leaving_ = false;
  Clock::time_point join_deadline_ = {};
  std::string last_try_ = "none yet";
  bool waits_for_place_ = false;

  // Of the last round.
  int round_ = 0;
  int restarts_ = 0;
  int nodes_ = 1;
  std::vector<NodeInfo> heirs_ = {};
  NodeInfo hub_ = {};
  /// Where the others of it may link from, if this node is the hub or an heir; empty: from anywhere.
  std::vector<std::string> places_ = {};

  /// Port for links of the hub that was asked for the next round; 0: none, since the last one began.
  int asked_ = 0;

  // When the hub of the last round is lost.
  bool cut_off_ = false;
  /// Port 0: it is not known, or lives elsewhere.
  StoreAddress lost_hub_ = {};
  /// Its connection was closed, not only silent.
  bool hub_closed_ = false;
  /// Nodes of the last round that are known to have ended.
  std::vector<NodeInfo> dead_ = {};
  /// Where the job may be, to be tried in turn.
  std::vector<StoreAddress> to_seek_ = {};
  bool endpoint_asked_ = false;
  /// Nodes that take this one for the new hub.
  std::vector<std::shared_ptr<Follower>> followers_ = {};
  /// Members of the last round from which this new coordinator has not heard: they may look for it elsewhere.
  std::vector<StoreAddress> to_tell_ = {};
};

}  // namespace acc::launcher
