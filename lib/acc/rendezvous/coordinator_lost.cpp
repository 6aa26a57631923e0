// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/coordinator_lost.hpp"

#include <fmt/format.h>

#include <utility>

#include "acc/base/log.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {

using boost::system::error_code;

namespace {

// Where the endpoint names no host, the job is hosted there; by a process that `node` knows, if it has its
// port. etcd's key always names one: a node of the last round, or one that took the key when it was free.
bool is_new_host(const NodeContext& node, const std::string& text, const StoreAddress& address) {
  const auto coordinator = parse_address(node.coordinator_address, "").value_or(StoreAddress{});
  if (node.is_etcd()) return address != coordinator && !node.last_round.has_leader_at(address);
  return text.find(':') == std::string::npos && address.port != coordinator.port &&
         address.port != node.last_round.lost_address().port;
}

}  // namespace

CoordinatorLost::CoordinatorLost(NodeContext& node, FirstStep first_step, Candidates candidates,
                                 Events events)
    : NodeState(node),
      first_step_(first_step),
      candidates_(std::move(candidates)),
      events_(std::move(events)),
      retry_(node.loop),
      later_successors_(node.loop, node.connect_timeout(), guard_([this](const StoreAddress& address) {
                          node_.last_round.note_failed(address, true);
                          if (may_lead(node_)) succeed();
                        })) {}

CoordinatorLost::~CoordinatorLost() {
  if (connecting_) connecting_->cancel();
  if (trial_) trial_->close();
}

void CoordinatorLost::start() {
  if (first_step_ == FirstStep::all) return ask_all();
  if (first_step_ == FirstStep::pause) return ask_later();
  ask(take_next(), [this] { ask_later(); });
}

void CoordinatorLost::ask_all() {
  if (may_lead(node_)) return succeed();
  candidates_ = {.addresses = node_.last_round.candidates(node_.introduction()), .endpoint_asked = false};
  later_successors_.start(node_.last_round.later_successors(node_.introduction()));
  ask_next();
}

void CoordinatorLost::ask_next() {
  if (candidates_.addresses.empty()) return ask_endpoint();
  ask(take_next(), [this] { may_lead(node_) ? succeed() : ask_next(); });
}

void CoordinatorLost::ask_later() {
  retry_.expires_after(kRetryInterval);
  retry_.async_wait(guard_([this](const error_code& error) {
    if (error) return;
    // The other addresses come first: a node that accepts a connection and closes it may do so every time.
    if (candidates_.endpoint_asked || may_lead(node_)) return ask_all();
    ask_next();
  }));
}

StoreAddress CoordinatorLost::take_next() {
  const StoreAddress address = candidates_.addresses.front();
  candidates_.addresses.erase(candidates_.addresses.begin());
  return address;
}

void CoordinatorLost::ask(const StoreAddress& address, std::function<void()> on_failed) {
  const auto note_failure = [this, address, on_failed = std::move(on_failed)](const std::string& reason,
                                                                              bool was_refused) {
    node_.last_try = to_string(address) + ": " + reason;
    log::debug("rendezvous: no coordinator at {}", node_.last_try);
    node_.last_round.note_failed(address, was_refused);
    on_failed();
  };
  connecting_ = std::make_shared<Connecting>(node_.loop);
  connecting_->start(address.host, address.port, node_.connect_timeout(),
                     guard_([this, address, note_failure](std::optional<net::tcp::socket> socket,
                                                          const std::string& reason) {
                       if (!socket) return note_failure(reason, connecting_->was_refused());
                       on_connected(address, std::move(*socket), note_failure);
                     }));
}

// Connections to a stopped process are accepted by the kernel: only what it sends shows that it runs.
void CoordinatorLost::on_connected(
    const StoreAddress& address, net::tcp::socket socket,
    std::function<void(const std::string& reason, bool was_refused)> on_failed) {
  trial_ = std::make_shared<NodeConnection>(std::move(socket), node_.connect_timeout());
  trial_->set_handlers([](const NodeMessage&) {},
                       guard_([this, on_failed = std::move(on_failed)](const ConnectionLoss& loss) {
                         trial_.reset();
                         on_failed(loss.reason, false);
                       }));
  trial_->on_next_bytes(
      guard_([this, address] { events_.on_found(std::exchange(trial_, nullptr), address, candidates_); }));
  trial_->start();
}

// The endpoint names the new coordinator once there is one.
void CoordinatorLost::ask_endpoint() {
  candidates_.endpoint_asked = true;
  if (!node_.coordinator_key) return ask_store();
  node_.coordinator_key->find(guard_([this](const EtcdCoordinatorKey::ClaimResult& result) {
    if (result.outcome == EtcdCoordinatorKey::ClaimResult::Outcome::held)
      return on_coordinator_told(result.text);
    node_.last_try = result.text;
    ask_later();
  }));
}

void CoordinatorLost::ask_store() {
  client_ = std::make_unique<StoreClient>(node_.loop, node_.connect_timeout());
  const auto on_failed = [this](const std::string& reason) {
    node_.last_try = node_.endpoint() + ": " + reason;
  };
  client_->connect({node_.settings.endpoint_host, node_.settings.endpoint_port},
                   RunningClock::now() + kRetryInterval, guard_(on_failed),
                   guard_([this](const std::optional<Error>& error) {
                     if (error) return ask_later();
                     client_->get(coordinator_key(node_.plan.run_id),
                                  guard_([this](StoreOutcome, const std::optional<std::string>& text) {
                                    text ? on_coordinator_told(*text) : ask_later();
                                  }));
                   }));
}

void CoordinatorLost::on_coordinator_told(const std::string& text) {
  const auto address = parse_address(text, node_.settings.endpoint_host);
  const bool is_self = address && *address == node_.ports.store_address();
  // All that look for the job come here.
  if (is_self && !node_.is_etcd() && node_.last_round.is_last_node()) return succeed();
  if (!address || is_self) return ask_later();
  if (is_new_host(node_, text, *address) && !may_begin_anew(node_)) {
    node_.last_try = to_string(*address) + " does not know the job, which others may go on with";
    log::debug("rendezvous: {}", node_.last_try);
    return ask_later();
  }
  ask(*address, [this] {
    if (!connecting_->was_refused() || !events_.on_outdated()) ask_later();
  });
}

void CoordinatorLost::on_member(const std::shared_ptr<Member>& member) {
  if (keep_pending_member(node_, member) && may_lead(node_)) succeed();
}

void CoordinatorLost::succeed() {
  events_.on_succession(fmt::format("{} of the {} nodes of round {} are here, {} have ended",
                                    node_.pending_members.size() + 1, node_.last_round.nodes(),
                                    node_.last_round.number(), node_.last_round.dead_nodes()));
}

}  // namespace acc::launcher
