// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/event_loop.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/running_clock.hpp"
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

/// How often a node asks where the job is, and how often a coordinator that is not at the endpoint looks who
/// is.
inline constexpr auto kRetryInterval = std::chrono::seconds(1);

/// How many nodes beyond the job's maximum a host keeps connected; more are told to ask again.
inline constexpr std::size_t kMaxSurplus = 256;

/// What a node of a job of several machines knows in every state.
struct NodeContext {
  /// Events of every state.
  struct Events {
    /// The coordinator has sent something.
    std::function<void(const NodeMessage&)> on_message = {};
    /// Another node has connected to this one.
    NodeListener::OnMember on_member = {};
    /// etcd's coordinator key was this node's, and now names the one at `address`, see EtcdCoordinatorKey.
    EtcdCoordinatorKey::OnLost on_key_lost = {};
    /// A message for the user.
    std::function<void(const std::string& text)> on_notice = {};
    /// The nodes cannot meet, and the job ends with `code`.
    std::function<void(const std::string& reason, int code)> on_failure = {};
  };

  /// Throws Error when the plan's secret cannot be read. `loop` and `plan` outlive it.
  NodeContext(net::io_context& loop, const LaunchPlan& plan, Events events);

  /// This node as it introduces itself.
  NodeInfo introduction() const;
  /// Its request for a round, with the store of the workers open.
  Join request_to_join();
  std::string endpoint() const;
  bool is_static() const { return settings.backend == RendezvousKind::static_; }
  bool is_etcd() const { return settings.backend == RendezvousKind::etcd; }
  /// Whether the job goes on when a node is lost.
  bool survives_loss() const;
  /// Timeout of one attempt to connect. Short, because another attempt follows.
  std::chrono::milliseconds connect_timeout() const;
  /// How long the coordinator may be silent.
  std::chrono::milliseconds node_timeout() const;

  net::io_context& loop;
  const LaunchPlan& plan;
  const RendezvousPlan& settings;
  const JobSecret secret;
  const Events events;
  NodePorts ports;
  LastRound last_round;
  // Only if the plan uses etcd, whose key says who hosts.
  std::unique_ptr<EtcdGateway> etcd = {};
  std::unique_ptr<EtcdCoordinatorKey> coordinator_key = {};
  /// Address of the current or last coordinator.
  std::string coordinator_address = {};
  /// Address of the node to which this one has yielded, and which does not lead the job.
  std::string refusing_address = {};
  /// Nodes that were absent when this one yielded as the coordinator of the last round.
  std::vector<NodeInfo> absent_nodes = {};
  /// Members of the last round that have connected to this node as the next coordinator, while that is
  /// undecided.
  std::vector<std::shared_ptr<Member>> pending_members = {};

  bool wants_round = false;
  bool in_round = false;
  /// Only leave() may follow.
  bool is_over = false;
  RunningClock::time_point join_deadline = {};
  std::string last_try = "none yet";
};

/// Where a node that has lost the coordinator has yet to ask for the job.
struct Candidates {
  std::vector<StoreAddress> addresses = {};
  bool endpoint_asked = true;
};

/// A state of a node, such as searching for the job, or hosting it. It owns what it needs for that; its
/// events, which ClusterNode handles, lead to the next state.
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
  /// The state is left: its pending handlers do nothing any more.
  void retire() { guard_.reset(); }

  /// To the coordinator, if one is known.
  virtual void send(const NodeMessage&) {}
  /// This node wants a round.
  virtual void ask_for_round() {}
  /// Another node has connected to this one and does not say that it leads the job.
  virtual void on_member(const std::shared_ptr<Member>& member) { member->connection->close(); }
  /// A round with this node has begun.
  virtual void on_round() {}

  /// What this node waits for, for the user.
  virtual std::string missing() const;
  /// Sends `text` to the nodes that wait for this one. Returns whether this node is to print it, too.
  virtual bool announce_waiting(const std::string&) { return true; }
  /// The join timeout is over: ends the job for all nodes. Returns false if this node cannot.
  virtual bool end_job(const std::string&) { return false; }

  /// Leaves the job, then calls `on_left`. `is_early`: the job is not over yet, and `leave` says why.
  virtual void leave(const Leave& leave, bool is_early, std::function<void()> on_left);

  /// Present while this node leads the job.
  virtual Host* host() { return nullptr; }
  /// Present while the job is looked for since its coordinator was lost.
  virtual std::optional<Candidates> candidates() const { return std::nullopt; }
  /// The address of the coordinator's connection; empty if it is this node, or there is none.
  virtual std::string coordinator_address() const { return {}; }

 protected:
  std::string missing_because(const std::string& last_try) const;
  std::string missing_job() const;

  NodeContext& node_;
  CallbackGuard guard_ = {};
};

/// The agent has not asked for a round yet, or the job is over.
class Idle : public NodeState {
 public:
  using NodeState::NodeState;
  const char* name() const override { return "idle"; }
  bool is_idle() const override { return true; }
};

/// Whether `member` can have been in this node's last round, so that its history is believed.
bool is_of_last_round(const NodeContext& node, const Member& member);
/// Whether a connection comes from an address that `is_known` accepts; one of this machine must be of the
/// same user.
bool comes_from(const NodeContext& node, const NodeConnection& connection,
                const std::function<bool(const std::string&)>& is_known);
/// Keeps a member that has connected to this node as the next coordinator. If it has no reason to, closes its
/// connection and returns false; a node without which the others went on sends it to them.
bool keep_pending_member(NodeContext& node, const std::shared_ptr<Member>& member);
/// Sends the pending members to the coordinator, if it is known, and closes their connections.
void redirect_pending_members(NodeContext& node);
/// Whether this node and its pending members may go on with the job.
bool may_lead(const NodeContext& node);
/// Whether this node may go on with the job at a host that was started anew.
bool may_begin_anew(const NodeContext& node);

}  // namespace acc::launcher
