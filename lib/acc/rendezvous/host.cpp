// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/event_loop.hpp"
#include "acc/base/log.hpp"
#include "acc/rendezvous/rendezvous_backend.hpp"
#include "acc/store/client.hpp"

namespace acc::launcher {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(20);
// For how long a node is heard until it is known to live.
constexpr int kProofHeartbeats = 3;
// How many nodes wait until it is known whether one has ended.
constexpr std::size_t kMaxClaimants = 16;
constexpr auto kAgentsTimeout = std::chrono::seconds(3);
// All nodes notice the loss of a coordinator at about the same time, and ask again after a second.
constexpr auto kSurvivorsTimeout = std::chrono::seconds(2);

// What an agent has open besides connections.
constexpr std::uint64_t kOwnFiles = 64;
constexpr std::uint64_t kFilesOfWorker = 4;

std::string to_raise(std::uint64_t needed) {
  return fmt::format("raise the hard limit of open files (ulimit -Hn) to {} or more", needed);
}

}  // namespace

std::string check_open_files(std::uint64_t max_files, const LaunchPlan& plan) {
  const auto workers = static_cast<std::uint64_t>(plan.nproc_per_node);
  const std::uint64_t agent_files = kOwnFiles + kFilesOfWorker * workers;
  const auto nodes = static_cast<std::uint64_t>(plan.rendezvous.max_nodes);
  const std::uint64_t needed_files = agent_files + nodes * (1 + workers);
  if (agent_files + static_cast<std::uint64_t>(plan.rendezvous.min_nodes) > max_files) {
    throw Error({.kind = ErrorKind::system,
                 .what = fmt::format("this node hosts the job and may open {} files, too few for connections "
                                     "to {} nodes",
                                     max_files, plan.rendezvous.min_nodes),
                 .hint = to_raise(needed_files)});
  }
  if (needed_files <= max_files) return {};
  return fmt::format(
      "this node may open {} files, too few for connections to {} nodes and {} workers of each; {}",
      max_files, nodes, workers, to_raise(needed_files));
}

std::string coordinator_key(const std::string& run_id) {
  return "/acc/hub/" + run_id;
}

std::string running_key(const std::string& run_id) {
  return "/acc/running/" + run_id;
}

Host::Host(net::io_context& loop, const LaunchPlan& plan, Deliver deliver,
           const std::vector<std::string>& addresses, std::uint16_t port, std::uint16_t node_port,
           const Succession& succession)
    : loop_(loop), plan_(plan), deliver_(std::move(deliver)), survivors_(loop), timeout_(loop), poll_(loop) {
  server_ = std::make_unique<StoreServer>(loop, StoreServerOptions{.addresses = addresses, .port = port});
  server_->set(coordinator_key(plan.run_id), std::to_string(node_port));
  serve_all();
  auto client = std::make_unique<StoreClient>(loop, plan.rendezvous.read_timeout);
  const std::string address = addresses.front() == "::" ? "127.0.0.1" : addresses.front();
  client->connect(
      {address, server_->port()}, RunningClock::now() + plan.rendezvous.read_timeout,
      [](const std::string&) {}, [](const std::optional<Error>&) {});
  store_ = std::move(client);
  make_coordinator(succession, node_port);
}

Host::Host(net::io_context& loop, const LaunchPlan& plan, Deliver deliver, std::unique_ptr<Store> store)
    : loop_(loop),
      plan_(plan),
      deliver_(std::move(deliver)),
      store_(std::move(store)),
      survivors_(loop),
      timeout_(loop),
      poll_(loop) {
  make_coordinator({}, 0);
}

Host::~Host() {
  drop();
}

void Host::make_coordinator(const Succession& succession, int node_port) {
  auto events = std::make_shared<RendezvousBackend::Events>();
  LaunchPlan backend_plan = plan_;
  // The nodes that outlived the lost coordinator are waited for, and no others.
  if (succession.rounds > 0) backend_plan.rendezvous.last_call_timeout = {};
  backend_ = make_backend(
      loop_, backend_plan, *store_,
      RendezvousBackend::Events{
          .on_round =
              [events, serve = guard_([this] { serve_round(); })](const auto& rounds) {
                events->on_round(rounds);
                serve();
              },
          .on_change = [events] { events->on_change(); },
          .on_closed =
              [this, events, check = guard_([this] { check_alone(); })] {
                backend_closed_ = true;
                events->on_closed();
                check();
              },
          .on_error = [events](const Error& error) { events->on_error(error); },
          .on_missing = [events](const std::string& text, bool spare) { events->on_missing(text, spare); }});
  coordinator_.emplace(
      *backend_, [this](Coordinator::NodeId node, const NodeMessage& message) { send(node, message); },
      Coordinator::Options{.plan = plan_.rendezvous,
                           .max_restarts = plan_.max_restarts,
                           .restarts_without_progress = plan_.restarts_without_progress,
                           .rounds = succession.rounds,
                           .restarts = succession.restarts,
                           .stall = succession.stall,
                           .absent_nodes = succession.absent_nodes,
                           .survivors = succession.survivors,
                           .has_led = succession.has_led,
                           .port = node_port,
                           .dead_ports = succession.dead_ports,
                           .before_round = [this] { forget_workers(); }});
  *events = coordinator_->backend_events();
  if (succession.survivors == 0) return;
  survivors_.expires_after(kSurvivorsTimeout);
  survivors_.async_wait(guard_([this](const boost::system::error_code& error) {
    if (!error) coordinator_->stop_expecting();
  }));
}

void Host::adopt(const std::shared_ptr<Member>& member) {
  if (const auto holder = coordinator_->unproven_holder(member->hello.node))
    return wait_for_holder(*holder, member);
  take(*member);
}

// When a machine has lost its power and is back, its earlier connection looks as if it were alive, until it
// carries something: the next heartbeat is refused. A holder that lives is heard before.
void Host::wait_for_holder(Coordinator::NodeId holder, const std::shared_ptr<Member>& claimant) {
  auto& claimants = claimants_[holder];
  claimants.push_back(claimant);
  if (claimants.size() == 1) return wait_for_bytes(holder);
  // Only one can have a rank: the latest.
  const bool is_static = plan_.rendezvous.backend == RendezvousKind::static_;
  if (!is_static && claimants.size() <= kMaxClaimants) return;
  claimants.front()->connection->close();
  claimants.erase(claimants.begin());
}

// What it sent before it ended comes first, soon as a rule: one that is heard again after some heartbeats
// lives.
void Host::wait_for_bytes(Coordinator::NodeId holder, std::optional<RunningClock::time_point> first_heard) {
  const auto entry = connections_.find(holder);
  if (entry == connections_.end()) return on_holder_heard(holder);
  entry->second->on_next_bytes(
      guard_([this, holder, first_heard, pause = kProofHeartbeats * entry->second->heartbeat()] {
        const auto now = RunningClock::now();
        const bool lives = first_heard.has_value() && now - *first_heard >= pause;
        lives ? on_holder_heard(holder) : wait_for_bytes(holder, first_heard.value_or(now));
      }));
}

// Another of the machine may be the one that has ended.
void Host::on_holder_heard(Coordinator::NodeId holder) {
  const auto claimants = claimants_.extract(holder);
  if (!claimants) return;
  for (const auto& claimant : claimants.mapped()) {
    const auto next = coordinator_->unproven_holder(claimant->hello.node, holder);
    if (!claimant->connection->is_open()) continue;
    if (next) {
      wait_for_holder(*next, claimant);
    } else {
      take(*claimant);
    }
  }
}

void Host::on_holder_lost(Coordinator::NodeId holder) {
  const auto claimants = claimants_.extract(holder);
  if (!claimants) return;
  for (const auto& claimant : claimants.mapped())
    if (claimant->connection->is_open()) adopt(claimant);
}

void Host::take(const Member& member) {
  const Coordinator::NodeId id = next_id_++;
  connections_[id] = member.connection;
  NodeInfo node = member.hello.node;
  node.seen_at = member.connection->peer_address();
  log::debug("rendezvous: node {} ({}, process {}) has connected from {}", id, node.host, node.pid,
             node.seen_at);
  member.connection->set_handlers(
      [this, id](const NodeMessage& message) { coordinator_->on_message(id, message); },
      [this, id, connection = std::weak_ptr<NodeConnection>(member.connection)](const ConnectionLoss& loss) {
        const auto silent = connection.lock();
        if (silent && !loss.peer_has_ended)
          silent->send(coordinator_->last_message("this node was " + loss.reason));
        connection_lost(id, loss);
      });
  member.connection->on_silence([this, id](const Silence& silence) {
    coordinator_->on_silence(id, silence);
    on_holder_lost(id);
  });
  member.connection->set_timeout(coordinator_->node_timeout());
  const auto earlier = coordinator_->earlier_connection(node);
  const NodeMessage last_message = coordinator_->last_message("this node has connected anew");
  coordinator_->on_hello(id, node, member.hello.history);
  if (earlier) dismiss_earlier(*earlier, last_message);
  for (const NodeMessage& message : member.messages) coordinator_->on_message(id, message);
}

// It may be the one that the node uses: an attempt that it has given up can arrive after the next.
void Host::dismiss_earlier(Coordinator::NodeId node, const NodeMessage& last_message) {
  if (const auto connection = connections_.extract(node)) connection.mapped()->dismiss(last_message);
  serve_all();
  on_holder_lost(node);
}

// Posted, because the coordinator may be in the middle of sending to all nodes.
void Host::connection_lost(Coordinator::NodeId node, const ConnectionLoss& loss) {
  net::post(loop_, guard_([this, node, loss] { remove(node, loss); }));
}

void Host::remove(Coordinator::NodeId node, const ConnectionLoss& loss) {
  log::debug("rendezvous: node {} has gone: {}", node,
             loss.peer_has_ended ? "its connection closed" : loss.reason);
  connections_.erase(node);
  serve_all();
  coordinator_->on_lost(node, loss.reason, loss.peer_has_ended);
  on_holder_lost(node);
  check_alone();
}

void Host::on_hello(const NodeInfo& info, const NodeHistory& history) {
  coordinator_->on_hello(0, info, history);
}

void Host::leave(const Leave& leave) {
  if (const auto verdict = coordinator_->end_without_host(leave)) {
    for (const auto& [id, connection] : connections_) connection->send(RoundEnds{*verdict});
  }
  drop();
}

void Host::on_message(const NodeMessage& message) {
  coordinator_->on_message(0, message);
}

void Host::send(Coordinator::NodeId node, const NodeMessage& message) {
  if (node == 0) return deliver_(message);
  const auto connection = connections_.find(node);
  if (connection == connections_.end()) return;
  const bool is_round_begin = std::holds_alternative<RoundBegins>(message);
  if (is_round_begin) connection->second->trust();
  connection->second->send(message);
  // A node that has been silent for longer should still hear of a success.
  if (is_round_begin || std::holds_alternative<RoundEnds>(message))
    connection->second->set_timeout(coordinator_->node_timeout());
}

std::unique_ptr<StoreServer> Host::move_to(const StoreAddress& coordinator, bool is_another_job) {
  for (const auto& [id, connection] : connections_)
    connection->dismiss(Moved{coordinator.host, coordinator.port, is_another_job});
  drop();
  deliver_ = [](const NodeMessage&) {};  // node 0 listens to the other coordinator now
  if (server_) server_->set(coordinator_key(plan_.run_id), to_string(coordinator));
  return std::move(server_);
}

bool Host::is_running_at(const std::string& address) const {
  return server_ && server_->get(running_key(plan_.run_id)) == address;
}

void Host::send_waiting(const std::string& text) {
  for (const auto& [id, connection] : connections_) connection->send(Waiting{text});
}

// In a static rendezvous agents and workers share one store, at the job's port: delete the workers' keys.
void Host::forget_workers() {
  if (!server_ || plan_.rendezvous.backend != RendezvousKind::static_) return;
  const std::string agents = "/" + plan_.run_id + "/torchelastic/";
  server_->forget_except([&](std::string_view key) {
    return key.starts_with(agents) || key.starts_with("/acc/") || key == "init/";
  });
}

// Serves all addresses: new nodes may join, or replace one that was lost.
void Host::serve_all() {
  if (server_) server_->serve({.others = StoreClients::Others::strangers});
}

// If workers use this store too, it serves only the round's nodes while the round runs. Nodes of torchrun
// have workers as well, whose addresses are not known.
void Host::serve_round() {
  if (!server_) return;
  const bool is_static = plan_.rendezvous.backend == RendezvousKind::static_;
  if (!is_static && plan_.rendezvous.agents != TorchAgents::v2_5) return serve_all();
  const std::vector<std::string> nodes = coordinator_->addresses_of_round();
  server_->serve({.nodes = nodes,
                  .others = nodes.empty() ? StoreClients::Others::members
                            : is_static   ? StoreClients::Others::refused
                                          : StoreClients::Others::strangers});
}

void Host::wait_until_alone(std::chrono::milliseconds timeout, std::function<void()> on_alone) {
  on_alone_ = std::move(on_alone);
  agents_deadline_ = RunningClock::now() + std::min<std::chrono::milliseconds>(timeout, kAgentsTimeout);
  timeout_.expires_after(timeout);
  timeout_.async_wait(guard_([this](const boost::system::error_code& error) {
    if (error) return;
    drop();
    backend_closed_ = true;
    check_alone();
  }));
  check_alone();
}

void Host::check_alone() {
  if (!on_alone_ || !connections_.empty()) return;
  if (coordinator_->is_over() && !backend_closed_) return;
  if (coordinator_->is_over() && agents_remain()) return check_alone_later();
  timeout_.cancel();
  poll_.cancel();
  std::exchange(on_alone_, nullptr)();
}

// torchrun's agents poll this store every second, and read there that the job has ended. One connection is
// our own client's.
bool Host::agents_remain() const {
  return server_ && server_->connections() > 1 && RunningClock::now() < agents_deadline_;
}

void Host::check_alone_later() {
  poll_.expires_after(kPollInterval);
  poll_.async_wait(guard_([this](const boost::system::error_code& error) {
    if (!error) check_alone();
  }));
}

void Host::drop() {
  for (const auto& [id, connection] : std::exchange(connections_, {})) connection->close();
  for (const auto& [holder, claimants] : std::exchange(claimants_, {}))
    for (const auto& claimant : claimants) claimant->connection->close();
}

}  // namespace acc::launcher
