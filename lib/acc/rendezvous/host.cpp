// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/host.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "acc/base/log.hpp"
#include "acc/rendezvous/make_board.hpp"
#include "acc/store/client.hpp"

namespace acc::launcher {
namespace {

constexpr auto kLook = std::chrono::milliseconds(20);
constexpr auto kForAgents = std::chrono::seconds(3);

}  // namespace

std::string hub_key(const std::string& run_id) {
  return "/acc/hub/" + run_id;
}

std::string running_key(const std::string& run_id) {
  return "/acc/running/" + run_id;
}

Host::Host(boost::asio::io_context& loop, const LaunchPlan& plan, Deliver deliver,
           const std::vector<std::string>& addresses, std::uint16_t port, std::uint16_t link_port,
           const Inheritance& inherited)
    : loop_(loop), plan_(plan), deliver_(std::move(deliver)), patience_(loop), look_(loop) {
  server_ = std::make_unique<StoreServer>(loop, StoreServerOptions{.addresses = addresses, .port = port});
  server_->set(hub_key(plan.run_id), std::to_string(link_port));
  serve_all();
  auto client = std::make_unique<StoreClient>(loop, plan.rendezvous.read_timeout);
  const std::string own = addresses.front() == "::" ? "127.0.0.1" : addresses.front();
  client->connect(
      {own, server_->port()}, std::chrono::steady_clock::now() + plan.rendezvous.read_timeout,
      [](const std::string&) {}, [](const std::optional<Error>&) {});
  store_ = std::move(client);
  make_hub(inherited, link_port);
}

Host::Host(boost::asio::io_context& loop, const LaunchPlan& plan, Deliver deliver,
           std::unique_ptr<Store> store)
    : loop_(loop),
      plan_(plan),
      deliver_(std::move(deliver)),
      store_(std::move(store)),
      patience_(loop),
      look_(loop) {
  make_hub({}, 0);
}

Host::~Host() {
  drop();
}

void Host::make_hub(const Inheritance& inherited, int link_port) {
  auto events = std::make_shared<Board::Events>();
  LaunchPlan asked = plan_;
  // Who has outlived the hub before is here, or is not coming.
  if (inherited.rounds > 0) asked.rendezvous.last_call_timeout = {};
  board_ = make_board(
      loop_, asked, *store_,
      Board::Events{.on_round =
                        [this, events, alive = std::weak_ptr<bool>(alive_)](const auto& places) {
                          events->on_round(places);
                          if (!alive.expired()) serve_round();
                        },
                    .on_change = [events] { events->on_change(); },
                    .on_closed =
                        [this, events] {
                          board_closed_ = true;
                          events->on_closed();
                          check_alone();
                        },
                    .on_error = [events](const Error& error) { events->on_error(error); },
                    .on_missing = [events](const std::string& text) { events->on_missing(text); }});
  hub_.emplace(
      *board_, [this](Hub::NodeId node, const NodeMessage& message) { send(node, message); },
      Hub::Options{.plan = plan_.rendezvous,
                   .max_restarts = plan_.max_restarts,
                   .rounds = inherited.rounds,
                   .restarts = inherited.restarts,
                   .away = inherited.away,
                   .port = link_port,
                   .dead_port = inherited.dead_port,
                   .before_round = [this] { forget_workers(); }});
  *events = hub_->board_events();
}

void Host::adopt(const Follower& follower) {
  const Hub::NodeId id = next_id_++;
  links_[id] = follower.link;
  NodeInfo node = follower.hello.node;
  node.seen_at = follower.link->peer_address();
  log::debug("rendezvous: node {} ({}, process {}) has connected from {}", id, node.host, node.pid,
             node.seen_at);
  follower.link->hear([this, id](const NodeMessage& message) { hub_->take(id, message); },
                      [this, id, link = std::weak_ptr<Link>(follower.link)](const LinkLoss& loss) {
                        const auto lost = link.lock();
                        if (lost && !loss.gone) lost->send(hub_->farewell("this node was " + loss.why));
                        link_lost(id, loss);
                      });
  follower.link->on_silence([this, id](const Silence& silence) { hub_->silent(id, silence); });
  follower.link->set_timeout(hub_->node_timeout());
  hub_->hello(id, node, follower.hello.history);
  for (const NodeMessage& message : follower.said) hub_->take(id, message);
}

// Not at once: the hub may be in the middle of telling all nodes.
void Host::link_lost(Hub::NodeId node, const LinkLoss& loss) {
  boost::asio::post(loop_, [this, node, loss, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    log::debug("rendezvous: node {} has gone: {}", node, loss.gone ? "its connection closed" : loss.why);
    links_.erase(node);
    serve_all();
    hub_->lost(node, loss.why, loss.gone);
    check_alone();
  });
}

void Host::hello(const NodeInfo& info, const NodeHistory& history) {
  hub_->hello(0, info, history);
}

void Host::leave(const Leave& leave) {
  if (const auto over = hub_->end_without_host(leave)) {
    for (const auto& [id, link] : links_) link->send(RoundEnds{*over});
  }
  drop();
}

void Host::take(const NodeMessage& message) {
  hub_->take(0, message);
}

void Host::send(Hub::NodeId node, const NodeMessage& message) {
  if (node == 0) return deliver_(message);
  const auto link = links_.find(node);
  if (link == links_.end()) return;
  const bool begins = std::holds_alternative<RoundBegins>(message);
  if (begins) link->second->trust();
  link->second->send(message);
  if (begins) link->second->set_timeout(hub_->node_timeout());
}

std::unique_ptr<StoreServer> Host::move_to(const NodeInfo& hub) {
  for (const auto& [id, link] : links_) link->send(Moved{hub.addr, hub.link_port});
  drop();
  if (server_) server_->set(hub_key(plan_.run_id), to_string(StoreAddress{hub.addr, hub.link_port}));
  return std::move(server_);
}

bool Host::says_running_at(const std::string& place) const {
  return server_ && server_->get(running_key(plan_.run_id)) == place;
}

void Host::tell_waiting(const std::string& text) {
  for (const auto& [id, link] : links_) link->send(Waiting{text});
}

// With a static rendezvous agents and workers share one store, and its port is the job's: the workers' keys
// go.
void Host::forget_workers() {
  if (!server_ || plan_.rendezvous.backend != RendezvousBackend::static_) return;
  const std::string agents = "/" + plan_.run_id + "/torchelastic/";
  server_->forget_except([&](std::string_view key) {
    return key.starts_with(agents) || key.starts_with("/acc/") || key == "init/";
  });
}

// Whoever may still be a node: to join, or in the place of one that was lost.
void Host::serve_all() {
  if (server_) server_->serve({.others = StoreClients::Others::strangers});
}

// Where the store is the workers' too, nobody else is to come while the round is whole. Nodes of torchrun
// have workers as well, and where from is not known.
void Host::serve_round() {
  if (!server_) return;
  const bool is_static = plan_.rendezvous.backend == RendezvousBackend::static_;
  if (!is_static && plan_.rendezvous.agents != TorchAgents::v2_5) return serve_all();
  const std::vector<std::string> nodes = hub_->places_of_round();
  server_->serve({.nodes = nodes,
                  .others = nodes.empty() ? StoreClients::Others::members
                            : is_static   ? StoreClients::Others::refused
                                          : StoreClients::Others::strangers});
}

void Host::wait_until_alone(std::chrono::milliseconds patience, std::function<void()> gone) {
  alone_ = std::move(gone);
  agents_until_ =
      std::chrono::steady_clock::now() + std::min<std::chrono::milliseconds>(patience, kForAgents);
  patience_.expires_after(patience);
  patience_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    drop();
    board_closed_ = true;
    check_alone();
  });
  check_alone();
}

void Host::check_alone() {
  if (!alone_ || !links_.empty()) return;
  if (hub_->is_over() && !board_closed_) return;
  if (hub_->is_over() && agents_remain()) return look_again();
  patience_.cancel();
  look_.cancel();
  std::exchange(alone_, nullptr)();
}

// torchrun's agents read the end of the job from this store, a second later at most. Our own client is one
// connection.
bool Host::agents_remain() const {
  return server_ && server_->connections() > 1 && std::chrono::steady_clock::now() < agents_until_;
}

void Host::look_again() {
  look_.expires_after(kLook);
  look_.async_wait([this](const boost::system::error_code& error) {
    if (!error) check_alone();
  });
}

void Host::drop() {
  for (const auto& [id, link] : std::exchange(links_, {})) link->close();
}

}  // namespace acc::launcher
