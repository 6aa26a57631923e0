// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/absent_nodes.hpp"

#include <algorithm>
#include <utility>

#include "acc/rendezvous/succession.hpp"

namespace acc::launcher {

AbsentNodes::AbsentNodes(Options options) : options_(std::move(options)), nodes_(options_.nodes) {}

void AbsentNodes::begin_round() {
  earlier_ = std::exchange(nodes_, {});
  earlier_ended_ = std::exchange(ended_, {});
  others_have_begun_ = false;
  ended_with_absent_ = 0;
  options_.has_led = true;
}

void AbsentNodes::add_silent(const NodeInfo& node, bool has_entered) {
  if (!has_entered) recall_earlier();
  nodes_.push_back(node);
  count_ended();
}

void AbsentNodes::add_ended(const NodeInfo& node, bool has_entered) {
  if (!has_entered) recall_earlier();
  ended_.push_back(node);
  count_ended();
}

// Whoever ended before may have gone on with one that is only now known to be silent.
void AbsentNodes::count_ended() {
  if (options_.has_led && !nodes_.empty() && size() >= options_.min_nodes)
    ended_with_absent_ = static_cast<int>(ended_.size());
}

// One that has not entered this round may go on with them.
void AbsentNodes::recall_earlier() {
  for (const NodeInfo& node : std::exchange(earlier_, {})) nodes_.push_back(node);
  for (const NodeInfo& node : std::exchange(earlier_ended_, {})) ended_.push_back(node);
}

bool AbsentNodes::come_back(const Arrival& arrival) {
  leave_earlier(arrival);
  const auto absent = find(arrival);
  if (absent == nodes_.end()) return false;
  const bool is_it = is_same_process(*absent, arrival.node);
  others_have_begun_ = others_have_begun_ || (is_it && arrival.history.dropped_round > arrival.round);
  const bool has_ended = !arrival.is_member && !is_it;
  has_ended ? end(absent, arrival.members()) : static_cast<void>(nodes_.erase(absent));
  return has_ended;
}

bool AbsentNodes::end(const StoreAddress& address, int members) {
  const auto absent =
      std::ranges::find_if(nodes_, [&](const NodeInfo& node) { return address_of(node) == address; });
  if (absent == nodes_.end()) return false;
  end(absent, members);
  return true;
}

void AbsentNodes::end(Nodes::iterator absent, int members) {
  const bool may_have_gone_on = options_.has_led && may_be_led_elsewhere(members);
  ended_.push_back(*absent);
  nodes_.erase(absent);
  if (may_have_gone_on) ended_with_absent_ = static_cast<int>(ended_.size());
}

// Itself; or, for a new process, the one of its machine for which it was started.
AbsentNodes::Nodes::iterator AbsentNodes::find(const Arrival& arrival) {
  const auto is_it = [&](const NodeInfo& node) { return is_same_process(node, arrival.node); };
  const auto is_replaced = [&](const NodeInfo& node) { return has_replaced(arrival, node); };
  const bool may_be_it = arrival.is_member || arrival.history.round == 0;
  auto absent = may_be_it ? std::ranges::find_if(nodes_, is_it) : nodes_.end();
  if (absent == nodes_.end()) absent = std::ranges::find_if(nodes_, is_replaced);
  // One of which nothing is known.
  if (absent == nodes_.end() && arrival.is_member && arrival.is_remote)
    absent = std::ranges::find(nodes_, NodeInfo{});
  return absent;
}

void AbsentNodes::leave_earlier(const Arrival& arrival) {
  const auto is_it = [&](const NodeInfo& node) {
    return is_same_process(node, arrival.node) || has_replaced(arrival, node);
  };
  const auto absent = std::ranges::find_if(earlier_, is_it);
  if (absent == earlier_.end()) return;
  if (!is_same_process(*absent, arrival.node)) earlier_ended_.push_back(*absent);
  earlier_.erase(absent);
}

// Whether a new process runs instead of that of `absent`, which has ended. Of several nodes of a machine it
// may have been started for one that is known to have ended, while the other is only silent.
bool AbsentNodes::has_replaced(const Arrival& arrival, const NodeInfo& absent) const {
  const auto is_of_machine = [&](const NodeInfo& node) { return is_same_machine(node, arrival.node); };
  const bool is_new = arrival.history.round == 0 && arrival.history.dropped_round == 0;
  return is_new && is_of_machine(absent) && std::ranges::none_of(ended_, is_of_machine) &&
         !arrival.is_connected(absent);
}

bool AbsentNodes::is_smaller_part(int members) const {
  if (nodes_.empty()) return false;
  if (others_have_begun_) return true;
  return options_.has_led ? size() + ended_with_absent_ > members : size() >= members;
}

bool AbsentNodes::may_be_led_elsewhere(int members) const {
  return is_smaller_part(members) && size() >= options_.min_nodes;
}

bool AbsentNodes::contains(const NodeInfo& node) const {
  return std::ranges::any_of(nodes_, [&](const NodeInfo& absent) { return is_same_process(absent, node); });
}

std::vector<NodeInfo> AbsentNodes::with_earlier() const {
  std::vector<NodeInfo> result = nodes_;
  result.insert(result.end(), earlier_.begin(), earlier_.end());
  return result;
}

std::vector<StoreAddress> AbsentNodes::addresses() const {
  std::vector<StoreAddress> result;
  for (const NodeInfo& node : nodes_) {
    // Behind a NAT, what answers there can be another machine, or this one.
    const bool is_reachable = node.addresses.empty() || is_seen_directly(node);
    if (node.node_port != 0 && is_reachable) result.push_back(address_of(node));
  }
  return result;
}

std::vector<int> AbsentNodes::dead_ports() const {
  std::vector<int> ports = options_.dead_ports;
  for (const NodeInfo& node : ended_) ports.push_back(node.node_port);
  return ports;
}

}  // namespace acc::launcher
