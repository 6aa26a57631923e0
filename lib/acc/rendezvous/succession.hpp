// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "acc/rendezvous/node_message.hpp"
#include "acc/store/dialer.hpp"

namespace acc::launcher {

/// Whether a part of a job whose coordinator is lost may go on: it must be the larger one, so that after a
/// network partition no two parts both do. `reached` nodes of the last round, this one included, have found
/// each other; the round had `nodes`, and `dead` of them are known to have ended.
bool may_succeed(int reached, int nodes, int dead);

/// This node's index among the successors of the coordinator, if it is one.
std::optional<std::size_t> index_among(const std::vector<NodeInfo>& successors, const NodeInfo& self);

/// Whether a node that connects anew counts for a coordinator with node port `port` in `round`: it was in
/// that round, and no other coordinator that is alive can count it as well. `dead_ports`: node ports of nodes
/// that are known to have ended.
bool counts_for(const NodeHistory& history, int round, int port, const std::vector<int>& dead_ports = {});

/// The nodes of a round with `nodes` nodes that have yet to connect to a successor that replaces
/// `coordinator`: all but itself and those that are `known_dead`. A node of which nothing is known is empty.
std::vector<NodeInfo> absent_nodes(const std::vector<NodeInfo>& successors, const NodeInfo& coordinator,
                                   const NodeInfo& self, int nodes, const std::vector<NodeInfo>& known_dead);

/// Where other nodes connect to `node`.
StoreAddress address_of(const NodeInfo& node);

/// What a node that replaces a lost coordinator starts from.
struct Succession {
  int rounds = 0;
  int restarts = 0;
  Stall stall = {};
  /// Nodes of the last round that may be alive and have yet to connect to the new coordinator.
  std::vector<NodeInfo> absent_nodes = {};
  /// How many nodes, besides the new coordinator, have outlived the lost one as far as is known.
  int survivors = 0;
  /// The new coordinator has led that round itself.
  bool has_led = false;
  /// Node ports of the nodes that are known to have ended.
  std::vector<int> dead_ports = {};
};

/// What a node knows of the last round that it was in and, once the coordinator is lost, of which nodes have
/// ended. From this follows where the job can be, and whether this node may lead it. Pure data, which the
/// node's states update.
class LastRound {
 public:
  /// `has_successors`: false in a static job, which only its own host can lead.
  explicit LastRound(bool has_successors) : has_successors_(has_successors) {}

  void begin(const RoundBegins& round);
  /// A spare, too, learns the successors of the coordinator.
  void set_successors(const std::vector<NodeInfo>& successors) { successors_ = successors; }
  /// The others went on without this node: it is a new one to them.
  void forget();
  /// And the job is full: `nodes` others are in its round, which this node need not know.
  void note_full(int nodes) { nodes_when_full_ = nodes; }

  /// The coordinator at `address` is lost; `was_closed`: its connection was closed, it was not only silent.
  void lose_coordinator(const std::optional<StoreAddress>& address, bool was_closed);
  /// Another node leads the job, and nothing is known of the last coordinator.
  void forget_coordinator() { lose_coordinator(std::nullopt, false); }
  /// Nothing answered at `address`; `was_refused`: its machine said that no process listens there.
  void note_failed(const StoreAddress& address, bool was_refused);
  /// The coordinator that was lost has answered again, and closed the connection. Only if nothing answers
  /// there any more has it ended: it also closes the connection of a node for which it has no place.
  void note_closed() { was_closed_ = true; }
  bool is_dead(const StoreAddress& address) const;
  /// Whether `address` is that of the lost coordinator, or of one of its successors.
  bool has_leader_at(const StoreAddress& address) const;

  /// This node has asked the coordinator at `address` for the next round; port 0: none any more.
  void ask(const StoreAddress& address);
  /// And has joined it there: a round may have begun since of which this node has not heard.
  void note_joined() { has_joined_ = true; }

  int number() const { return history_.round; }
  int restarts() const { return history_.restarts; }
  int nodes() const { return nodes_; }
  const NodeHistory& history() const { return history_; }
  const NodeInfo& coordinator() const { return coordinator_; }
  /// This node was in no round, and knows of no other node.
  bool is_unknown() const { return history_.round == 0 && successors_.empty(); }
  bool has_successor(const NodeInfo& node) const { return index_among(successors_, node).has_value(); }
  /// `node` has led that round.
  bool has_coordinator(const NodeInfo& node) const { return index_among({coordinator_}, node).has_value(); }
  bool has_successors() const { return has_successors_; }
  /// Addresses of the other nodes, if this node is the coordinator or a successor; empty: any.
  const std::vector<std::string>& addresses() const { return addresses_; }
  /// Address of the lost coordinator; port 0: it is not known, or the job is led elsewhere.
  const StoreAddress& lost_address() const { return lost_address_; }

  /// Where the job can be once the coordinator is lost, in the order in which `self` asks.
  std::vector<StoreAddress> candidates(const NodeInfo& self) const;
  /// Successors after `self`, which ask it instead; unless they have ended: then they do not count.
  std::vector<StoreAddress> later_successors(const NodeInfo& self) const;
  /// Whether `self`, to which nodes with these histories have connected as the next coordinator, may be it:
  /// the larger part of the nodes is here, and counts for no other. After a coordinator that was silent those
  /// count, too, that have ended: its part may have gone on before it did.
  bool may_lead(const NodeInfo& self, const std::vector<NodeHistory>& pending_members) const;
  /// Whether this node may join a host that was started anew and knows of no round: not while others of the
  /// last round may go on, at least `min_nodes` of them, without this node and those of that round that have
  /// connected to it.
  bool may_begin_anew(int min_nodes, int pending_members) const;
  /// What `self` begins with as the new coordinator. `counts_restart`: the loss uses up a restart.
  /// `earlier_absent`: nodes that were absent when it led that round itself.
  Succession succession(const NodeInfo& self, bool counts_restart,
                        const std::vector<NodeInfo>& earlier_absent = {}) const;
  /// Members to which the new coordinator `self` introduces itself: they may look for it elsewhere.
  std::vector<StoreAddress> other_members(const NodeInfo& self) const;
  /// All others of the round that this node was in are known to have ended, and no other can have begun.
  bool is_last_node() const {
    return !has_joined_ && history_.round > 0 && static_cast<int>(dead_nodes_.size()) >= nodes_ - 1;
  }
  /// How many of the last round's nodes are known to have ended.
  std::size_t dead_nodes() const { return dead_nodes_.size(); }

 private:
  bool coordinator_is_dead() const { return index_among(dead_nodes_, coordinator_).has_value(); }
  std::vector<int> dead_ports() const;

  bool has_successors_;
  NodeHistory history_ = {};
  int nodes_ = 1;
  int nodes_when_full_ = 0;
  std::vector<NodeInfo> successors_ = {};
  NodeInfo coordinator_ = {};
  std::vector<std::string> addresses_ = {};
  StoreAddress lost_address_ = {};
  StoreAddress asked_address_ = {};
  bool was_closed_ = false;
  bool was_silent_ = false;
  bool has_joined_ = false;
  std::vector<NodeInfo> dead_nodes_ = {};
};

}  // namespace acc::launcher
