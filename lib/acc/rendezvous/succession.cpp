// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/succession.hpp"

#include <algorithm>
#include <utility>

namespace acc::launcher {
namespace {

bool has_same_address(const NodeInfo& first, const NodeInfo& second) {
  return first.addr == second.addr && first.node_port == second.node_port;
}

}  // namespace

bool may_succeed(int reached, int nodes, int dead) {
  return 2 * reached > nodes - dead;
}

std::optional<std::size_t> index_among(const std::vector<NodeInfo>& successors, const NodeInfo& self) {
  for (std::size_t i = 0; i < successors.size(); ++i) {
    if (has_same_address(successors[i], self)) return i;
  }
  return std::nullopt;
}

bool counts_for(const NodeHistory& history, int round, int port, const std::vector<int>& dead_ports) {
  const bool is_free = history.asked_port == 0 || history.asked_port == port ||
                       std::ranges::count(dead_ports, history.asked_port) > 0;
  return round > 0 && history.round == round && is_free;
}

std::vector<NodeInfo> absent_nodes(const std::vector<NodeInfo>& successors, const NodeInfo& coordinator,
                                   const NodeInfo& self, int nodes, const std::vector<NodeInfo>& known_dead) {
  std::vector<NodeInfo> result = successors;
  result.insert(result.begin(), coordinator);
  std::erase_if(result, [&](const NodeInfo& node) {
    return has_same_address(node, self) || index_among(known_dead, node);
  });
  const int expected = nodes - 1 - static_cast<int>(known_dead.size());
  result.resize(static_cast<std::size_t>(std::max(expected, 0)));
  return result;
}

StoreAddress address_of(const NodeInfo& node) {
  return {node.addr, node.node_port};
}

void LastRound::begin(const RoundBegins& round) {
  history_ = {.round = round.number, .restarts = round.ready.restarts, .stall = round.stall};
  nodes_ = round.nodes;
  nodes_when_full_ = 0;
  has_joined_ = false;
  successors_ = round.successors;
  coordinator_ = round.coordinator;
  addresses_ = round.addresses;
  ask({});
}

void LastRound::lose_coordinator(const std::optional<StoreAddress>& address, bool was_closed) {
  lost_address_ = address.value_or(StoreAddress{});
  was_closed_ = was_closed;
  was_silent_ = !was_closed;
  dead_nodes_.clear();
}

void LastRound::forget() {
  history_.dropped_round = std::max(history_.dropped_round, history_.round);
  history_.round = 0;
}

void LastRound::ask(const StoreAddress& address) {
  history_.asked_port = address.port;
  asked_address_ = address;
}

// A coordinator that has closed its connection and does not answer any more has ended.
void LastRound::note_failed(const StoreAddress& address, bool was_refused) {
  if (was_refused && address == asked_address_) ask({});
  if (address == lost_address_ && (was_refused || was_closed_) && !coordinator_is_dead())
    dead_nodes_.push_back(coordinator_);
  for (const NodeInfo& successor : successors_) {
    if (was_refused && address_of(successor) == address && !index_among(dead_nodes_, successor))
      dead_nodes_.push_back(successor);
  }
}

bool LastRound::is_dead(const StoreAddress& address) const {
  if (address == lost_address_) return coordinator_is_dead();
  return std::ranges::any_of(dead_nodes_, [&](const NodeInfo& node) { return address == address_of(node); });
}

bool LastRound::has_leader_at(const StoreAddress& address) const {
  return address == lost_address_ || std::ranges::any_of(successors_, [&](const NodeInfo& successor) {
           return address == address_of(successor);
         });
}

std::vector<int> LastRound::dead_ports() const {
  std::vector<int> result;
  if (coordinator_is_dead()) result.push_back(lost_address_.port);
  for (const NodeInfo& node : dead_nodes_) result.push_back(node.node_port);
  return result;
}

// While the coordinator that this node has asked may be alive, this node counts for no other. It need not
// have been in the last round: a new host can have ended before its first.
std::vector<StoreAddress> LastRound::candidates(const NodeInfo& self) const {
  std::vector<StoreAddress> result;
  // A device between two machines can close a connection, too.
  const bool coordinator_may_live = lost_address_.port != 0 && !coordinator_is_dead();
  if (was_closed_ && coordinator_may_live) result.push_back(lost_address_);
  for (const NodeInfo& successor : successors_) {
    if (!has_successors_ || has_same_address(successor, self)) break;
    if (!index_among(dead_nodes_, successor)) result.push_back(address_of(successor));
  }
  if (!was_closed_ && coordinator_may_live) result.push_back(lost_address_);
  if (asked_address_.port != 0 && !is_dead(asked_address_) && !std::ranges::count(result, asked_address_))
    result.insert(result.begin(), asked_address_);
  return result;
}

std::vector<StoreAddress> LastRound::later_successors(const NodeInfo& self) const {
  std::vector<StoreAddress> result;
  const std::optional<std::size_t> index = index_among(successors_, self);
  if (!has_successors_ || !index) return result;
  for (std::size_t i = *index + 1; i < successors_.size(); ++i) {
    if (!index_among(dead_nodes_, successors_[i])) result.push_back(address_of(successors_[i]));
  }
  return result;
}

bool LastRound::may_lead(const NodeInfo& self, const std::vector<NodeHistory>& pending_members) const {
  if (!has_successors_ || self.node_port == 0) return false;
  const auto counts = [this, port = self.node_port, ports = dead_ports()](const NodeHistory& history) {
    return counts_for(history, history_.round, port, ports);
  };
  const auto reached = static_cast<int>(std::ranges::count_if(pending_members, counts));
  const auto dead = was_silent_ ? 0 : static_cast<int>(dead_nodes_.size());
  return counts(history_) && may_succeed(reached + 1, nodes_, dead);
}

// Who leads that round may go on with half of it, and without its coordinator only more than half can. Those
// that were with a silent coordinator may have gone on with it before it ended. A node that they have dropped
// belongs to no part, and one that has asked a successor to the successor's, while that may be alive.
bool LastRound::may_begin_anew(int min_nodes, int pending_members) const {
  const int others = std::max(nodes_ - 1, nodes_when_full_) - pending_members;
  const int living = others - static_cast<int>(dead_nodes_.size());
  if (!has_successors_ || living < min_nodes) return true;
  const bool has_asked_successor = std::ranges::any_of(successors_, [this](const NodeInfo& successor) {
    return address_of(successor) == asked_address_ && !index_among(dead_nodes_, successor);
  });
  if (has_asked_successor) return false;
  const int part = history_.round > 0 ? 1 + pending_members : 0;
  if (was_silent_) return others < part;
  return coordinator_is_dead() ? living <= part : living < part;
}

Succession LastRound::succession(const NodeInfo& self, bool counts_restart,
                                 const std::vector<NodeInfo>& earlier_absent) const {
  std::vector<NodeInfo> absent = absent_nodes(successors_, coordinator_, self, nodes_, dead_nodes_);
  for (const NodeInfo& node : earlier_absent) {
    if (!index_among(absent, node)) absent.push_back(node);
  }
  return {.rounds = history_.round,
          .restarts = history_.restarts + (counts_restart ? 1 : 0),
          .stall = history_.stall,
          .absent_nodes = std::move(absent),
          .survivors = std::max(
              nodes_ - 1 - static_cast<int>(dead_nodes_.size()) - (coordinator_is_dead() ? 0 : 1), 0),
          .has_led = has_coordinator(self),
          .dead_ports = dead_ports()};
}

std::vector<StoreAddress> LastRound::other_members(const NodeInfo& self) const {
  std::vector<StoreAddress> result;
  if (lost_address_.port != 0) result.push_back(lost_address_);
  for (const NodeInfo& successor : successors_) {
    if (!has_same_address(successor, self)) result.push_back(address_of(successor));
  }
  return result;
}

}  // namespace acc::launcher
