// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/own_addresses.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/rendezvous/callback_guard.hpp"
#include "acc/rendezvous/etcd_coordinator_key.hpp"
#include "acc/rendezvous/etcd_messages.hpp"
#include "acc/rendezvous/host.hpp"
#include "acc/rendezvous/job_secret.hpp"
#include "acc/rendezvous/node_ports.hpp"
#include "acc/rendezvous/succession.hpp"
#include "acc/store/dialer.hpp"

namespace acc::launcher {

/// How long a node waits before it asks again where the job is, and how often a coordinator that is not at
/// the endpoint looks who is.
inline constexpr auto kRetryInterval = std::chrono::seconds(1);

/// Nodes beyond those that the job can have which a host keeps connected; more are told to come again.
inline constexpr std::size_t kMaxSurplus = 256;

/// What a node of a job of several machines is and knows, whichever state it is in.
struct NodeContext {
  /// What may come to a node in any state.
  struct Events {
    /// The coordinator has sent something.
    std::function<void(const NodeMessage&)> message = {};
    /// Another node has connected to this one.
    NodeListener::OnMember member = {};
    /// etcd's key of the coordinator was this node's, and is now of the one at `place`.
    std::function<void(const std::string& place)> key_lost = {};
    /// What a person wants to know.
    std::function<void(const std::string& text)> notice = {};
    /// The nodes cannot meet, and the job ends with `code`.
    std::function<void(const std::string& why, int code)> failed = {};
  };

  /// Throws Error when the plan's secret cannot be read. `loop` and `plan` outlive it.
  NodeContext(boost::asio::io_context& loop, const LaunchPlan& plan, Events events);

  /// This node as it introduces itself.
  NodeInfo introduction() const;
  std::string endpoint() const;
  bool is_static() const { return settings.backend == RendezvousKind::static_; }
  bool is_etcd() const { return settings.backend == RendezvousKind::etcd; }
  /// Whether the job goes on when a node is lost.
  bool survives_loss() const;
  /// Of one attempt to connect: the next follows, and TCP's own repetitions in one are few.
  std::chrono::milliseconds connect_timeout() const;
  /// How long the coordinator may be silent.
  std::chrono::milliseconds node_timeout() const;

  boost::asio::io_context& loop;
  const LaunchPlan& plan;
  const RendezvousPlan& settings;
  const JobSecret secret;
  const Events events;
  NodePorts ports;
  LastRound last_round;
  // etcd says who hosts, where the plan has it.
  std::unique_ptr<EtcdGateway> etcd = {};
  std::unique_ptr<EtcdCoordinatorKey> coordinator_key = {};
  /// Where the coordinator is, or was, to which this node connects.
  std::string coordinator_place = {};
  /// Members of the last round that take this node for the next coordinator, until it is or is not.
  std::vector<std::shared_ptr<Member>> followers = {};

  bool wants_round = false;
  bool in_round = false;
  /// Nothing but leave() follows.
  bool over = false;
  std::chrono::steady_clock::time_point join_deadline = {};
  std::string last_try = "none yet";
};

/// Where a node that has lost the coordinator has yet to look for the job.
struct Candidates {
  std::vector<StoreAddress> places = {};
  bool endpoint_asked = true;
};

/// What a node does at a time: it looks for the job, is connected to its coordinator, hosts it. A state holds
/// what it needs for that, and ends it with itself; its events, which ClusterNode connects, say where it
/// leads.
class NodeState {
 public:
  explicit NodeState(NodeContext& node) : node_(node) {}
  virtual ~NodeState() = default;
  NodeState(const NodeState&) = delete;
  NodeState& operator=(const NodeState&) = delete;

  /// For the log and for `acc ps`.
  virtual const char* name() const = 0;
  virtual bool is_idle() const { return false; }
  /// Begins; may lead to the next state at once.
  virtual void start() {}
  /// The state is left: nothing that it waits for is heard any more.
  void retire() { guard_.reset(); }

  /// To the coordinator, if one is known.
  virtual void send(const NodeMessage&) {}
  /// This node wants a round.
  virtual void ask_for_round() {}
  /// Another node has connected to this one and does not say that it leads the job.
  virtual void on_member(const std::shared_ptr<Member>& member) { member->connection->close(); }
  /// A round has begun, of which this node is.
  virtual void on_round() {}

  /// What this node waits for, for people.
  virtual std::string missing() const;
  /// Passes that on to the nodes that wait for this one; whether this node's own person is told, too.
  virtual bool announce_waiting(const std::string&) { return true; }
  /// The time to meet is over: ends the job for all nodes, if this one can.
  virtual bool end_job(const std::string&) { return false; }

  /// Leaves the job, then calls `left`. `early`: the job is not over yet, and `leave` says why.
  virtual void leave(const Leave& leave, bool early, std::function<void()> left);

  /// This node leads the job with it.
  virtual Host* host() { return nullptr; }
  /// Present while the job is looked for since its coordinator was lost.
  virtual std::optional<Candidates> candidates() const { return std::nullopt; }
  /// The address that the coordinator is seen at; empty: it is this node, or none.
  virtual std::string coordinator_address() const { return {}; }

 protected:
  std::string missing_because(const std::string& last_try) const;

  NodeContext& node_;
  CallbackGuard guard_ = {};
};

/// Nothing to do: nobody has asked for a round yet, or the job is over.
class Idle : public NodeState {
 public:
  using NodeState::NodeState;
  const char* name() const override { return "idle"; }
  bool is_idle() const override { return true; }
};

/// Whether `member` was in this node's last round: what it was part of is believed then.
bool is_of_last_round(const NodeContext& node, const Member& member);
/// Whether a connection comes from where `is_place` says; one of this machine must be of the same user.
bool comes_from(const NodeContext& node, const NodeConnection& connection,
                const std::function<bool(const std::string&)>& is_place);
/// Keeps a member that takes this node for the next coordinator; false, and closes its connection, when it
/// has no reason to.
bool keep_follower(NodeContext& node, const std::shared_ptr<Member>& member);
/// Tells the followers where the coordinator is, if that is known, and sends them there.
void redirect_followers(NodeContext& node);
/// Whether this node may lead the job on with its followers.
bool may_lead(const NodeContext& node);

}  // namespace acc::launcher
