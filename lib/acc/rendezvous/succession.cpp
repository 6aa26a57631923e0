// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/succession.hpp"

#include <algorithm>

namespace acc::launcher {
namespace {

bool has_same_address(const NodeInfo& one, const NodeInfo& other) {
  return one.addr == other.addr && one.node_port == other.node_port;
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
  const bool is_free =
      history.asked == 0 || history.asked == port || std::ranges::count(dead_ports, history.asked) > 0;
  return round > 0 && history.round == round && is_free;
}

std::vector<NodeInfo> yet_to_come(const std::vector<NodeInfo>& successors, const NodeInfo& coordinator,
                                  const NodeInfo& self, int nodes, const std::vector<NodeInfo>& known_dead) {
  std::vector<NodeInfo> result = successors;
  result.insert(result.begin(), coordinator);
  std::erase_if(result, [&](const NodeInfo& one) {
    return has_same_address(one, self) || index_among(known_dead, one);
  });
  const int others = nodes - 1 - static_cast<int>(known_dead.size());
  result.resize(static_cast<std::size_t>(std::max(others, 0)));
  return result;
}

StoreAddress address_of(const NodeInfo& node) {
  return {node.addr, node.node_port};
}

void LastRound::begin(const RoundBegins& round) {
  history_ = {.round = round.number, .restarts = round.ready.restarts, .stall = round.stall};
  nodes_ = round.nodes;
  successors_ = round.successors;
  coordinator_ = round.coordinator;
  addresses_ = round.places;
  ask({});
}

void LastRound::lose_coordinator(const std::optional<StoreAddress>& address, bool closed) {
  lost_address_ = address.value_or(StoreAddress{});
  closed_ = closed;
  dead_.clear();
}

void LastRound::ask(const StoreAddress& address) {
  history_.asked = address.port;
  asked_address_ = address;
}

// A coordinator that has closed its connection and does not answer any more has ended.
void LastRound::note_failed(const StoreAddress& address, bool refused) {
  if (refused && address == asked_address_) ask({});
  if (address == lost_address_ && (refused || closed_) && !coordinator_is_dead())
    dead_.push_back(coordinator_);
  for (const NodeInfo& successor : successors_) {
    if (refused && address_of(successor) == address && !index_among(dead_, successor))
      dead_.push_back(successor);
  }
}

bool LastRound::is_dead(const StoreAddress& address) const {
  if (address == lost_address_) return coordinator_is_dead();
  return std::ranges::any_of(dead_, [&](const NodeInfo& one) { return address == address_of(one); });
}

std::vector<int> LastRound::dead_ports() const {
  std::vector<int> result;
  if (coordinator_is_dead()) result.push_back(lost_address_.port);
  for (const NodeInfo& one : dead_) result.push_back(one.node_port);
  return result;
}

// While the coordinator that this node has asked may be alive, this node counts for no other. It need not
// have been in the last round: a new host can have ended before its first.
std::vector<StoreAddress> LastRound::candidates(const NodeInfo& self) const {
  std::vector<StoreAddress> result;
  // A device between two machines can close a connection, too.
  const bool coordinator_may_live = lost_address_.port != 0 && !coordinator_is_dead();
  if (closed_ && coordinator_may_live) result.push_back(lost_address_);
  for (const NodeInfo& successor : successors_) {
    if (!has_successors_ || has_same_address(successor, self)) break;
    if (!index_among(dead_, successor)) result.push_back(address_of(successor));
  }
  if (!closed_ && coordinator_may_live) result.push_back(lost_address_);
  if (asked_address_.port != 0 && !is_dead(asked_address_) && !std::ranges::count(result, asked_address_))
    result.insert(result.begin(), asked_address_);
  return result;
}

std::vector<StoreAddress> LastRound::later_successors(const NodeInfo& self) const {
  std::vector<StoreAddress> result;
  const std::optional<std::size_t> index = index_among(successors_, self);
  if (!has_successors_ || !index) return result;
  for (std::size_t i = *index + 1; i < successors_.size(); ++i) {
    if (!index_among(dead_, successors_[i])) result.push_back(address_of(successors_[i]));
  }
  return result;
}

bool LastRound::may_lead(const NodeInfo& self, const std::vector<NodeHistory>& pending_members) const {
  if (!has_successors_ || self.node_port == 0) return false;
  const auto counts = [this, port = self.node_port, dead = dead_ports()](const NodeHistory& one) {
    return counts_for(one, history_.round, port, dead);
  };
  const auto reached = static_cast<int>(std::ranges::count_if(pending_members, counts));
  return counts(history_) && may_succeed(reached + 1, nodes_, static_cast<int>(dead_.size()));
}

Succession LastRound::succession(const NodeInfo& self, bool counts_restart) const {
  return {
      .rounds = history_.round,
      .restarts = history_.restarts + (counts_restart ? 1 : 0),
      .stall = history_.stall,
      .away = yet_to_come(successors_, coordinator_, self, nodes_, dead_),
      .survivors = std::max(nodes_ - 1 - static_cast<int>(dead_.size()) - (coordinator_is_dead() ? 0 : 1), 0),
      .dead_ports = dead_ports()};
}

std::vector<StoreAddress> LastRound::others(const NodeInfo& self) const {
  std::vector<StoreAddress> result;
  if (lost_address_.port != 0) result.push_back(lost_address_);
  for (const NodeInfo& successor : successors_) {
    if (!has_same_address(successor, self)) result.push_back(address_of(successor));
  }
  return result;
}

}  // namespace acc::launcher
