// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "acc/rendezvous/node_message.hpp"
#include "acc/store/dialer.hpp"

namespace acc::launcher {

/// What a coordinator knows of the nodes of its last round that are not with it: they may go on elsewhere.
/// Pure data.
class AbsentNodes {
 public:
  struct Options {
    /// The fewest nodes of a round.
    int min_nodes = 1;
    /// For a coordinator that replaces a lost one: nodes that may be alive and have yet to come, and the node
    /// ports of those that are known to have ended.
    std::vector<NodeInfo> nodes = {};
    std::vector<int> dead_ports = {};
    /// The coordinator has led that round itself, so that half of its nodes are enough.
    bool has_led = false;
  };
  /// A node that has connected.
  struct Arrival {
    const NodeInfo& node;
    const NodeHistory& history;
    /// It counts for this coordinator as a node of the last round, whose number is `round`.
    bool is_member = false;
    int round = 0;
    /// It runs in another process than the coordinator.
    bool is_remote = true;
    /// Whether a node is connected to this coordinator, and how many of the last round's are.
    std::function<bool(const NodeInfo&)> is_connected = {};
    std::function<int()> members = {};
  };
  explicit AbsentNodes(Options options);

  /// A round begins, with nodes that have yet to enter it.
  void begin_round();
  /// A node of the round is silent, or has ended; `has_entered`: it was in that round, as it has said.
  void add_silent(const NodeInfo& node, bool has_entered);
  void add_ended(const NodeInfo& node, bool has_entered);
  /// Takes a node off the list: it is back, or another process runs instead of it. Returns whether that shows
  /// that one has ended.
  bool come_back(const Arrival& arrival);
  /// The process of the node that listened at `address` has ended. Returns whether it was absent.
  bool end(const StoreAddress& address, int members);

  /// Too many nodes are absent for `members` of the last round: no round begins until they are back. After a
  /// network partition the larger part goes on, and of two equal parts the one with the old coordinator;
  /// unless the other one has begun a round, as a node says that it was dropped from.
  bool is_smaller_part(int members) const;
  /// And they are enough for a round of their own.
  bool may_be_led_elsewhere(int members) const;

  bool contains(const NodeInfo& node) const;
  int size() const { return static_cast<int>(nodes_.size()); }
  /// Those that are absent, or may be if others have not entered the last round.
  std::vector<NodeInfo> with_earlier() const;
  /// Where they have listened, of all of which this is known and can be reached.
  std::vector<StoreAddress> addresses() const;
  /// Node ports of those that are known to have ended.
  std::vector<int> dead_ports() const;

 private:
  using Nodes = std::vector<NodeInfo>;

  Nodes::iterator find(const Arrival& arrival);
  void leave_earlier(const Arrival& arrival);
  void recall_earlier();
  bool has_replaced(const Arrival& arrival, const NodeInfo& absent) const;
  void end(Nodes::iterator absent, int members);
  void count_ended();

  Options options_;
  /// Nodes that fell silent and may still be alive somewhere.
  Nodes nodes_ = {};
  /// One of them is back, and was in a later round meanwhile: those that are absent still may go on with it.
  bool others_have_begun_ = false;
  /// Others that have ended since the round began,
  Nodes ended_ = {};
  /// and how many of them may have gone on with those that are absent before they ended.
  int ended_with_absent_ = 0;
  /// The same of the round before. A node that has not entered the last one may go on with them.
  Nodes earlier_ = {};
  Nodes earlier_ended_ = {};
};

}  // namespace acc::launcher
