// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/node_state.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "acc/base/text.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {
namespace {

constexpr std::chrono::milliseconds kConnectTimeout = std::chrono::seconds(3);

// Whoever is sent away so has asked nobody any more.
void redirect(const NodeContext& node, const Member& member) {
  const auto coordinator = parse_address(node.coordinator_address, "");
  if (!coordinator) return member.connection->close();
  member.connection->dismiss(Moved{coordinator->host, coordinator->port});
}

std::vector<NodeHistory> pending_histories(const NodeContext& node) {
  std::vector<NodeHistory> histories;
  for (const auto& member : node.pending_members) {
    if (member->connection->is_open()) histories.push_back(member->hello.history);
  }
  return histories;
}

}  // namespace

NodeContext::NodeContext(net::io_context& the_loop, const LaunchPlan& the_plan, Events the_events)
    : loop(the_loop),
      plan(the_plan),
      settings(the_plan.rendezvous),
      secret(job_secret(the_plan.rendezvous)),
      events(std::move(the_events)),
      ports(the_loop, the_plan, net::own_names(), secret, events.on_member),
      last_round(the_plan.rendezvous.backend != RendezvousKind::static_) {}

NodeInfo NodeContext::introduction() const {
  return {.host = ports.own_names().host_name,
          .addr = ports.address(),
          .pid = plan.process == 0 ? static_cast<int>(::getpid()) : plan.process,
          .node_rank = settings.node_rank,
          .role = plan.role,
          .workers = plan.nproc_per_node,
          .node_port = ports.port(),
          .protocol = kProtocol,
          .addresses = addresses_to_tell(ports.own_names())};
}

Join NodeContext::request_to_join() {
  ports.refresh_addresses();
  return {.store_port = ports.open_workers_store(), .addresses = addresses_to_tell(ports.own_names())};
}

std::string NodeContext::endpoint() const {
  return to_string(StoreAddress{settings.endpoint_host, settings.endpoint_port});
}

bool NodeContext::survives_loss() const {
  return settings.survives_loss(plan.max_restarts - last_round.restarts());
}

std::chrono::milliseconds NodeContext::connect_timeout() const {
  return std::min(settings.timeout_of_node(true), kConnectTimeout);
}

std::chrono::milliseconds NodeContext::node_timeout() const {
  return settings.timeout_of_node(!in_round || survives_loss());
}

std::string NodeState::missing() const {
  return missing_because(node_.last_try);
}

std::string NodeState::missing_because(const std::string& last_try) const {
  const std::string host = candidates()      ? "the node that hosted the job was lost, and " + missing_job()
                           : node_.is_etcd() ? "etcd at " + node_.endpoint() + " is to name the job's host"
                                             : node_.endpoint() + " is to host the job";
  return fmt::format("{}; last try: {}", host, last_try);
}

// Why this node does not go on with those that it has found.
std::string NodeState::missing_job() const {
  const LastRound& round = node_.last_round;
  const int living = round.nodes() - 1 - static_cast<int>(round.dead_nodes());
  if (round.number() == 0 || living <= 0) return "the job is looked for";
  return fmt::format("{} of the {} other nodes may be alive, and go on without this one", living,
                     round.nodes() - 1);
}

void NodeState::leave(const Leave& /*leave*/, bool /*is_early*/, std::function<void()> on_left) {
  retire();
  on_left();
}

bool is_of_last_round(const NodeContext& node, const Member& member) {
  const std::vector<std::string>& addresses = node.last_round.addresses();
  return addresses.empty() || member.is_proven ||
         comes_from(node, *member.connection,
                    [&](const std::string& address) { return contains(addresses, address); });
}

bool comes_from(const NodeContext& node, const NodeConnection& connection,
                const std::function<bool(const std::string&)>& is_known) {
  const std::string peer = connection.peer_address();
  const std::vector<std::string>& own_addresses = node.ports.own_names().addresses;
  const bool is_here = is_loopback(peer) || contains(own_addresses, peer);
  return is_here ? connection.is_own_users() : is_known(peer);
}

bool keep_pending_member(NodeContext& node, const std::shared_ptr<Member>& member) {
  std::erase_if(node.pending_members, [](const auto& pending) { return !pending->connection->is_open(); });
  const LastRound& round = node.last_round;
  const NodeInfo self = node.introduction();
  const bool is_expected = round.has_successors() &&
                           (round.has_successor(self) || round.has_coordinator(self)) &&
                           is_of_last_round(node, *member);
  // Nobody waits for a node that waits for it, or that knows less of the job.
  const StoreAddress address = address_of(member->hello.node);
  const bool is_asked = to_string(address) == node.coordinator_address;
  if (is_expected && round.number() > 0 && member->hello.history.round > round.number()) {
    member->connection->dismiss(Moved{address.host, address.port});
    return false;
  }
  const bool has_room = node.pending_members.size() < static_cast<std::size_t>(round.nodes()) + kMaxSurplus;
  if (is_expected && has_room && round.number() > 0) {
    node.pending_members.push_back(member);
    return true;
  }
  if (is_expected || is_asked) {
    redirect(node, *member);
  } else {
    member->connection->close();
  }
  return false;
}

void redirect_pending_members(NodeContext& node) {
  for (const auto& member : std::exchange(node.pending_members, {})) redirect(node, *member);
}

bool may_lead(const NodeContext& node) {
  return node.last_round.may_lead(node.introduction(), pending_histories(node));
}

bool may_begin_anew(const NodeContext& node) {
  const int round = node.last_round.number();
  const auto is_member = [round](const NodeHistory& history) {
    return round > 0 && (history.round == round || history.dropped_round == round);
  };
  const auto members = std::ranges::count_if(pending_histories(node), is_member);
  return node.last_round.may_begin_anew(node.settings.min_nodes, static_cast<int>(members));
}

}  // namespace acc::launcher
