// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/hosting.hpp"

#include <algorithm>
#include <utility>

#include "acc/base/running_clock.hpp"
#include "acc/rendezvous/introduction.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {

using boost::system::error_code;

Hosting::Hosting(NodeContext& node, std::unique_ptr<Host> host)
    : NodeState(node),
      host_(std::move(host)),
      probe_timer_(node.loop),
      absent_nodes_probe_(node.loop, node.connect_timeout(), guard_([this](const StoreAddress& address) {
                            node_.last_round.note_failed(address, true);
                            host_->coordinator().on_ended(address);
                          })) {}

void Hosting::start() {
  probe_absent_nodes_later();
  host_->on_hello(node_.introduction(), node_.last_round.history());
  for (const auto& member : std::exchange(node_.pending_members, {})) {
    if (member->connection->is_open()) host_->adopt(member);
  }
  if (node_.wants_round) ask_for_round();
}

void Hosting::ask_for_round() {
  send(node_.request_to_join());
}

void Hosting::on_member(const std::shared_ptr<Member>& member) {
  if (has_room_for(*member)) return host_->adopt(member);
  const std::optional<RoundOver> verdict = host_->coordinator().surplus();
  member->connection->dismiss(verdict ? NodeMessage(RoundEnds{*verdict}) : NodeMessage(Full{}));
}

// Until all nodes have joined, a node may come from anywhere, and once the job is over.
bool Hosting::has_room_for(const Member& member) const {
  const Coordinator& coordinator = host_->coordinator();
  if (coordinator.nodes() >= static_cast<std::size_t>(node_.settings.max_nodes) + kMaxSurplus) return false;
  if (!coordinator.is_full() || coordinator.is_over() || member.is_proven) return true;
  return comes_from(node_, *member.connection,
                    [&](const std::string& address) { return coordinator.is_address_of_node(address); });
}

bool Hosting::announce_waiting(const std::string& text) {
  host_->send_waiting(text);
  return true;
}

bool Hosting::end_job(const std::string& reason) {
  host_->coordinator().give_up(reason);
  return true;
}

// Connected nodes leave because the job is over, or notice that this one is gone.
void Hosting::leave(const Leave& leave, bool is_early, std::function<void()> on_left) {
  retire();
  if (is_early) host_->leave(leave);
  host_->wait_until_alone(node_.plan.shutdown_timeout + node_.settings.close_timeout, std::move(on_left));
}

// A node that has ended, as the lost coordinator usually has, is no part of a partitioned network.
void Hosting::probe_absent_nodes_later() {
  probe_timer_.expires_after(kRetryInterval);
  probe_timer_.async_wait(guard_([this](const error_code& error) {
    if (error || node_.is_over) return;
    if (host()->coordinator().is_smaller_part())
      absent_nodes_probe_.start(host()->coordinator().absent_nodes().addresses());
    probe_absent_nodes_later();
  }));
}

Succeeding::Succeeding(NodeContext& node, std::unique_ptr<Host> host, std::vector<StoreAddress> members,
                       OnMoved on_moved)
    : Hosting(node, std::move(host)),
      members_(std::move(members)),
      on_moved_(std::move(on_moved)),
      timer_(node.loop) {}

Succeeding::~Succeeding() {
  if (connecting_) connecting_->cancel();
  if (claim_) claim_->close();
}

void Succeeding::start() {
  Hosting::start();
  if (node_.is_over) return;
  if (!node_.coordinator_key) return look_later();
  node_.coordinator_address = to_string(node_.last_round.lost_address());
  claim_key();
}

void Succeeding::on_member(const std::shared_ptr<Member>& member) {
  std::erase(members_, address_of(member->hello.node));
  Hosting::on_member(member);
}

void Succeeding::leave(const Leave& leave, bool is_early, std::function<void()> on_left) {
  if (connecting_) connecting_->cancel();
  if (claim_) std::exchange(claim_, nullptr)->close();
  client_.reset();
  Hosting::leave(leave, is_early, std::move(on_left));
}

void Succeeding::look_later() {
  timer_.expires_after(kRetryInterval);
  timer_.async_wait(guard_([this](const error_code& error) {
    if (error || node_.is_over) return;
    node_.coordinator_key ? claim_key() : look_at_endpoint();
  }));
}

void Succeeding::look_at_endpoint() {
  client_ = std::make_unique<StoreClient>(node_.loop, node_.connect_timeout());
  client_->connect(
      {node_.settings.endpoint_host, node_.settings.endpoint_port}, RunningClock::now() + kRetryInterval,
      [](const std::string&) {}, guard_([this](const std::optional<Error>& error) {
        if (error || node_.is_over) return introduce_to_next_member();
        client_->get(coordinator_key(node_.plan.run_id),
                     guard_([this](StoreOutcome, const std::optional<std::string>& text) {
                       on_coordinator_told(text.value_or(""));
                     }));
      }));
}

void Succeeding::on_coordinator_told(const std::string& text) {
  const auto address = parse_address(text, node_.settings.endpoint_host);
  const bool is_refusing = address && to_string(*address) == node_.refusing_address;
  if (!address || *address == node_.ports.store_address() || is_refusing) return introduce_to_next_member();
  const bool hosts_there = text.find(':') == std::string::npos;
  const StoreAddress& lost = node_.last_round.lost_address();
  const bool is_lost_coordinator = hosts_there && address->port == lost.port;
  const Coordinator& coordinator = host()->coordinator();
  // With a host that was started anew it would begin another job.
  if (hosts_there && !is_lost_coordinator && coordinator.may_be_led_elsewhere()) return look_later();
  // The one that this node has replaced knows less of the job, if a round has begun since.
  const bool has_led = node_.last_round.has_coordinator(node_.introduction());
  if (is_lost_coordinator && has_led && coordinator.is_smaller_part()) return introduce_to(lost);
  if (coordinator.is_smaller_part())
    return on_moved_(*address, "this part of the job is the smaller one", false);
  if (!hosts_there) return introduce_to_next_member();
  // A new host believes the claim only if its own store confirms it.
  client_->set(running_key(node_.plan.run_id), to_string(node_.ports.store_address()));
  client_->get(running_key(node_.plan.run_id),
               guard_([this, address = *address](StoreOutcome, const auto&) { introduce_to(address); }));
}

// A member looks only for successors that precede it, so a later one introduces itself to the members.
void Succeeding::introduce_to_next_member() {
  std::erase_if(members_, [this](const StoreAddress& address) { return node_.last_round.is_dead(address); });
  if (members_.empty() || host()->coordinator().is_smaller_part()) return look_later();
  std::ranges::rotate(members_, members_.begin() + 1);
  introduce_to(members_.back());
}

void Succeeding::introduce_to(const StoreAddress& address) {
  connecting_ = std::make_shared<Connecting>(node_.loop);
  connecting_->start(address.host, address.port, node_.connect_timeout(),
                     guard_([this, address](std::optional<net::tcp::socket> socket, const std::string&) {
                       if (!socket) node_.last_round.note_failed(address, connecting_->was_refused());
                       if (socket && !node_.is_over) return claim(address, std::move(*socket));
                       look_later();
                     }));
}

// A host that leads a round does not yield: it answers Full, and the nodes of this host move there.
void Succeeding::claim(const StoreAddress& address, net::tcp::socket socket) {
  claim_ = std::make_shared<NodeConnection>(std::move(socket), node_.node_timeout());
  const auto on_lost = guard_([this](const ConnectionLoss&) {
    if (!node_.is_over) look_later();
  });
  const auto on_answer = guard_([this, address](const NodeMessage& message) {
    if (!std::holds_alternative<Full>(message) || node_.is_over) return;
    on_moved_(address, "a host that leads a round does not yield", true);
  });
  claim_->set_handlers([](const NodeMessage&) {}, on_lost);
  claim_->start();
  introduce(claim_, node_.secret,
            {.run_id = node_.plan.run_id, .node = node_.introduction(), .is_coordinator = true},
            guard_([this, address, on_answer, on_lost](bool is_proven) {
              // Others are told again until they connect: they may not have noticed the loss yet.
              if (address == node_.last_round.lost_address()) std::erase(members_, address);
              if (is_proven) claim_->set_handlers(on_answer, on_lost);
            }),
            on_lost);
}

// Replaces the lost coordinator in etcd's key. A host that has begun another job meanwhile notices that it
// has lost the key.
void Succeeding::claim_key() {
  using Outcome = EtcdCoordinatorKey::ClaimResult::Outcome;
  node_.coordinator_key->claim(
      to_string(node_.ports.store_address()), node_.coordinator_address,
      guard_([this](const EtcdCoordinatorKey::ClaimResult& result) {
        if (node_.is_over || result.outcome == Outcome::acquired) return;
        const auto address = result.outcome == Outcome::held ? parse_address(result.text, "") : std::nullopt;
        const bool is_new_host = address && !node_.last_round.has_leader_at(*address);
        if (is_new_host && host()->coordinator().may_be_led_elsewhere()) return look_later();
        if (address && host()->coordinator().is_smaller_part())
          return on_moved_(*address, "this part of the job is the smaller one", false);
        if (address) node_.coordinator_address = result.text;
        look_later();
      }));
}

std::unique_ptr<Host> host_at_own_port(NodeContext& node, const Succession& succession) {
  return std::make_unique<Host>(node.loop, node.plan, node.events.on_message, node.ports.addresses(), 0,
                                node.ports.port(), succession);
}

}  // namespace acc::launcher
