// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include "acc/rendezvous/succession.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {
namespace {

// Enough for several losses of the coordinator, one after the other; more would make every round's message
// longer.
constexpr std::size_t kMaxSuccessors = 8;

// For one of the two lists in the message of a round's begin. Without it any address counts.
std::vector<std::string> unless_too_long(std::vector<std::string> addresses) {
  constexpr std::size_t kMaxBytes = NodeConnection::kMaxMessage / 8 * 3;
  std::size_t bytes = 0;
  for (const std::string& address : addresses) bytes += address.size() + std::string_view("\"\",").size();
  if (bytes > kMaxBytes) addresses.clear();
  return addresses;
}

std::string name_of(const NodeInfo& node) {
  return fmt::format("node {} ({}, pid {})", node.host, node.addr, node.pid);
}

OwnNode in_backend(const NodeInfo& info, Coordinator::NodeId id) {
  return {.addr = info.addr,
          .pid = info.pid,
          .local_id = id,
          .node_rank = info.node_rank,
          .role = info.role,
          .local_world_size = info.workers,
          .store_port = info.store_port};
}

RoundOver job_over(const std::string& text, int code = exit_code(ErrorKind::rendezvous)) {
  return {.restart = false, .text = text, .exit_code = code};
}

RoundOver no_room() {
  return job_over("all places of the job are taken, and those of its spares");
}

// Nodes send no others: see plan_preemption() and Agent::on_signal(). Workers get the signal, and the job
// ends with the code.
bool announces_end(int signal) {
  return signal == SIGUSR1 || signal == SIGUSR2;
}

bool is_code_of_signal(int exit_code) {
  return exit_code > 128 && exit_code < 128 + NSIG;
}

// A store takes no others.
std::vector<std::string> numeric_addresses(std::vector<std::string> addresses) {
  std::erase_if(addresses, [](const std::string& address) {
    boost::system::error_code error;
    net::ip::make_address(address, error);
    return error.failed();
  });
  return addresses;
}

// Others would overflow where the job counts on from them.
bool is_possible(const NodeHistory& history) {
  constexpr int kMax = 1'000'000'000;
  return std::ranges::all_of(
      std::array{history.round, history.restarts, history.dropped_round, history.stall.restarts},
      [](int number) { return number >= 0 && number <= kMax; });
}

}  // namespace

Coordinator::Coordinator(RendezvousBackend& backend, Send send, Options options)
    : backend_(backend),
      send_(std::move(send)),
      options_(std::move(options)),
      rounds_(options_.rounds),
      restarts_(options_.restarts),
      stall_(options_.restarts_without_progress),
      absent_nodes_({.min_nodes = options_.plan.min_nodes,
                     .nodes = options_.absent_nodes,
                     .dead_ports = options_.dead_ports,
                     .has_led = options_.rounds == 0 || options_.has_led}),
      survivors_(options_.survivors) {
  stall_.set_stall(options_.stall);
}

RendezvousBackend::Events Coordinator::backend_events() {
  return {.on_round = [this](const Rounds& rounds) { on_round(rounds); },
          .on_change = [this] { group_changed("a node joins or has left"); },
          .on_closed =
              [this] {
                if (!finishing_) end_job(job_over("another node has closed the job"));
              },
          .on_error = [this](const Error& error) { end_job(job_over(error.what())); },
          .on_missing = [this](const std::string& text, bool spare) { on_missing(text, spare); }};
}

void Coordinator::on_hello(NodeId id, const NodeInfo& info, const NodeHistory& history) {
  if (const auto earlier = earlier_connection(info)) on_lost(*earlier, "it has connected anew", false);
  nodes_[id] = {.info = info, .history = is_possible(history) ? history : NodeHistory{}};
  nodes_[id].info.addresses = numeric_addresses(info.addresses);
  by_address_.emplace(info.seen_at, id);
  not_ready_.insert(id);
  come_back(id);
  remember_success(nodes_.at(id));
  if (options_.plan.backend != RendezvousKind::static_) return;
  const auto [holder, is_free] = by_rank_.try_emplace(info.node_rank, id);
  if (is_free) return;
  forget(id);
  send_(id, RoundEnds{{.text = fmt::format("node rank {} is taken by {}; give this node another --node-rank",
                                           info.node_rank, name_of(nodes_.at(holder->second).info)),
                       .exit_code = exit_code(ErrorKind::usage)}});
}

std::optional<Coordinator::NodeId> Coordinator::unproven_holder(const NodeInfo& info, NodeId proven) const {
  const auto is_here = [&](const auto& entry) { return is_same_process(entry.second.info, info); };
  const auto may_have_ended = [&](NodeId id) {
    const NodeInfo& holder = nodes_.at(id).info;
    return id > proven && is_same_machine(holder, info) && !is_same_process(holder, info);
  };
  if (options_.plan.backend == RendezvousKind::static_) {
    const auto holder = by_rank_.find(info.node_rank);
    if (holder == by_rank_.end() || !may_have_ended(holder->second)) return std::nullopt;
    // on_hello() takes a silent one for lost.
    return nodes_.at(holder->second).silent ? std::nullopt : std::optional(holder->second);
  }
  if (!is_crowded() || std::ranges::any_of(nodes_, is_here)) return std::nullopt;
  const auto holder =
      std::ranges::find_if(nodes_, [&](const auto& entry) { return may_have_ended(entry.first); });
  return holder == nodes_.end() ? std::nullopt : std::optional(holder->first);
}

// A node connects anew when it has lost its connection before this coordinator noticed, or was started again:
// as which node only a static job says. Otherwise it may be another one on the machine of a silent one.
std::optional<Coordinator::NodeId> Coordinator::earlier_connection(const NodeInfo& info) const {
  const bool is_static = options_.plan.backend == RendezvousKind::static_;
  const auto is_earlier = [&](const Node& node) {
    if (is_static && node.silent && is_same_machine(node.info, info))
      return node.info.node_rank == info.node_rank;
    return info.node_port != 0 && is_same_process(node.info, info);
  };
  for (auto entry = by_address_.lower_bound({info.seen_at, 0});
       entry != by_address_.end() && entry->first == info.seen_at; ++entry) {
    if (is_earlier(nodes_.at(entry->second))) return entry->second;
  }
  return std::nullopt;
}

void Coordinator::forget(NodeId id) {
  const Node& node = nodes_.at(id);
  by_address_.erase({node.info.seen_at, id});
  if (const auto rank = by_rank_.find(node.info.node_rank); rank != by_rank_.end() && rank->second == id)
    by_rank_.erase(rank);
  not_ready_.erase(id);
  not_done_.erase(id);
  pending_.erase(id);
  nodes_.erase(id);
}

// Takes a node of the last round off the list of those that are absent: it is back, or another process runs
// in its place.
void Coordinator::come_back(NodeId id) {
  Node& node = nodes_.at(id);
  const NodeHistory& history = node.history;
  // One that has not heard of the last round's begin has been in no other since.
  const bool has_missed_begin = history.round < rounds_ && absent_nodes_.contains(node.info);
  node.member = counts_for(history, has_missed_begin ? history.round : rounds_, options_.port,
                           absent_nodes_.dead_ports());
  node.entered = node.member && (history.round == rounds_ || node.info.protocol < kProtocolOfEntry);
  if (node.member && id != 0 && survivors_ > 0) --survivors_;
  const auto is_connected = [this](const NodeInfo& info) {
    return std::ranges::any_of(nodes_,
                               [&](const auto& entry) { return is_same_process(entry.second.info, info); });
  };
  const bool shows_end = absent_nodes_.come_back({.node = node.info,
                                                  .history = history,
                                                  .is_member = node.member,
                                                  .round = rounds_,
                                                  .is_remote = id != 0,
                                                  .is_connected = is_connected,
                                                  .members = [this] { return count(&Node::member); }});
  if (shows_end) count_again();
  if (history.round > std::max(rounds_, latest_round_)) stall_.set_stall(history.stall);
  latest_round_ = std::max({latest_round_, history.round, history.dropped_round});
  const bool counts = rounds_ == 0 && history.round > 0 && options_.plan.min_nodes == options_.plan.max_nodes;
  restarts_ = std::max(restarts_, history.restarts + (counts ? 1 : 0));
}

// Who has asked a node for a round counts again when that one has ended.
void Coordinator::count_again() {
  const std::vector<int> ports = absent_nodes_.dead_ports();
  for (const auto& [id, node] : nodes_) {
    const bool has_asked = node.history.round > 0 && std::ranges::count(ports, node.history.asked_port) > 0;
    if (!node.member && has_asked) come_back(id);
  }
}

// It was cut off when its workers had succeeded, and waits for those of the others as it would have done.
void Coordinator::remember_success(Node& node) {
  if (succeeded_) node.done = node.history.round == rounds_;
  const auto is_it = [&](const NodeInfo& info) { return is_same_process(info, node.info); };
  if (std::erase_if(succeeded_nodes_, is_it) > 0 && phase_ == Phase::running) node.done = node.member;
}

void Coordinator::on_message(NodeId id, const NodeMessage& message) {
  if (!nodes_.contains(id)) return;
  if (const auto* join = std::get_if<Join>(&message)) on_join(id, *join);
  if (const auto* failure = std::get_if<WorkerFailed>(&message)) on_worker_failed(id, *failure);
  if (const auto* entry = std::get_if<RoundEntered>(&message)) on_round_entered(id, *entry);
  if (const auto* success = std::get_if<WorkersDone>(&message)) on_workers_done(id, *success);
  if (const auto* leave = std::get_if<Leave>(&message)) on_leave(id, *leave);
  if (const auto* stop = std::get_if<StopJob>(&message)) on_stop_job(id, *stop);
  if (const auto* notice = std::get_if<EndNotice>(&message)) on_end_notice(id, *notice);
  if (const auto* progress = std::get_if<NodeProgress>(&message)) on_progress(id, *progress);
  if (const auto* slow = std::get_if<SlowRanks>(&message)) on_slow_ranks(id, *slow);
  if (const auto* wanted = std::get_if<RanksWanted>(&message); wanted && reports_in(id, wanted->round))
    on_ranks_wanted(id);
  if (const auto* report = std::get_if<RankReport>(&message); report && reports_in(id, report->round))
    on_rank_report(id, *report);
  if (const auto* hang = std::get_if<NodeHang>(&message); hang && reports_in(id, hang->round))
    tell_of_hang(hang_.on_message(id, *hang));
}

void Coordinator::on_join(NodeId id, const Join& request) {
  Node& node = nodes_.at(id);
  if (phase_ == Phase::over) {
    if (succeeded_ && node.done) return send_(id, JobEnds{});
    return send_(id, RoundEnds{job_over("the job is over")});
  }
  node.in_round = false;
  node.info.store_port = request.store_port;
  if (!request.addresses.empty()) node.info.addresses = numeric_addresses(request.addresses);
  node.ready = true;
  not_ready_.erase(id);
  not_done_.erase(id);
  pending_.insert(id);
  if (phase_ != Phase::running) return meet_when_all_ready();
  if (node.done) return wait_as_spare(id, "this node's workers have succeeded, those of others still run");
  if (!may_stay_spare()) {
    forget(id);
    send_(id, RoundEnds{no_room()});
    return;
  }
  pending_.erase(id);
  node.in_backend = true;
  backend_.add(in_backend(node.info, id));
  wait_as_spare(id, "the job runs; this node waits for a place, or for the next round");
}

void Coordinator::wait_as_spare(NodeId id, const std::string& text) {
  nodes_.at(id).spare = true;
  send_(id, Waiting{text, successors_, true});
}

bool Coordinator::is_address_of_node(const std::string& address) const {
  const auto entry = by_address_.lower_bound({address, 0});
  return (entry != by_address_.end() && entry->first == address) ||
         std::ranges::count(succeeded_nodes_, address, &NodeInfo::seen_at) > 0;
}

std::optional<RoundOver> Coordinator::surplus() const {
  if (!options_.plan.spares || count(&Node::ready) < *options_.plan.spares) return std::nullopt;
  return no_room();
}

// A node that comes now must end.
bool Coordinator::is_crowded() const {
  return phase_ == Phase::running && options_.plan.spares &&
         count(&Node::member) >= options_.plan.max_nodes && count(&Node::ready) >= *options_.plan.spares;
}

// The node that asks counts as ready already.
bool Coordinator::may_stay_spare() const {
  if (!options_.plan.spares || count(&Node::member) < options_.plan.max_nodes) return true;
  return count(&Node::ready) <= *options_.plan.spares;
}

void Coordinator::on_worker_failed(NodeId id, const WorkerFailed& message) {
  if (phase_ != Phase::running || message.round != rounds_ || !nodes_.at(id).in_round) return;
  const RoundOver verdict = decide(message.failure, stall_);
  if (!verdict.restart) return end_job(verdict);
  ++restarts_;
  end_round(verdict);
}

void Coordinator::on_round_entered(NodeId id, const RoundEntered& message) {
  if (message.round == rounds_) nodes_.at(id).entered = true;
}

void Coordinator::on_workers_done(NodeId id, const WorkersDone& message) {
  if (phase_ != Phase::running || message.round != rounds_ || !nodes_.at(id).in_round) return;
  nodes_.at(id).done = true;
  not_done_.erase(id);
  tell_of_hang(hang_.on_success(id));
  finish_when_all_done();
}

void Coordinator::on_leave(NodeId id, const Leave& message) {
  lose(id, fmt::format("{} has left: {}", name_of(nodes_.at(id).info), message.reason), !message.superseded,
       message.exit_code);
}

// While a round runs its nodes do: to connect is not to take part, and a spare has no say in a job that runs
// without it. Between rounds those of the last one do, and others that have joined.
bool Coordinator::speaks_for_job(NodeId id) const {
  const Node& node = nodes_.at(id);
  if (node.in_round) return true;
  return !node.spare && (id == 0 || (phase_ != Phase::running && (node.member || node.ready)));
}

void Coordinator::on_stop_job(NodeId id, const StopJob& request) {
  if (!speaks_for_job(id) || !is_code_of_signal(request.exit_code)) return;
  end_job(job_over(name_of(nodes_.at(id).info) + " was asked to stop the job", request.exit_code));
}

// A node of an older acc would take a message that it does not know for an error.
void Coordinator::on_end_notice(NodeId id, const EndNotice& notice) {
  if (!speaks_for_job(id) || !announces_end(notice.signal)) return;
  for (const auto& [other_id, node] : nodes_) {
    if (other_id != id && node.info.protocol >= kProtocolOfEndNotice) send_(other_id, notice);
  }
}

// Node 0 compares the ranks of all.
void Coordinator::on_progress(NodeId id, NodeProgress progress) {
  const Node& node = nodes_.at(id);
  if (phase_ != Phase::running || progress.round != rounds_ || !node.in_round) return;
  progress.node = id;
  progress.host = node.info.host;
  send_(0, progress);
}

void Coordinator::on_slow_ranks(NodeId id, const SlowRanks& slow) {
  if (id != 0) return;
  for (const auto& [other_id, node] : nodes_) {
    if (other_id != id && node.in_round && node.info.protocol >= kProtocolOfProgress) send_(other_id, slow);
  }
}

bool Coordinator::reports_in(NodeId id, int round) const {
  return phase_ == Phase::running && round == rounds_ && nodes_.at(id).in_round;
}

// A node is asked once until it has reported, however many look and however often they ask.
void Coordinator::on_ranks_wanted(NodeId id) {
  send_(id, peers_of(id));
  for (auto& [other_id, node] : nodes_) {
    if (other_id == id || !node.in_round || node.info.protocol < kProtocolOfReports) continue;
    const bool is_asked = !node.viewers.empty();
    node.viewers.insert(id);
    if (!is_asked) send_(other_id, RanksWanted{rounds_});
  }
}

Peers Coordinator::peers_of(NodeId id) const {
  Peers peers = {.round = rounds_};
  for (const auto& [other_id, node] : nodes_) {
    if (other_id == id || !node.in_round) continue;
    peers.nodes.push_back({.node_rank = node.machine_rank,
                           .host = node.info.host,
                           .workers = node.info.workers,
                           .first_rank = node.first_rank,
                           .reports = node.info.protocol >= kProtocolOfReports});
  }
  return peers;
}

void Coordinator::on_rank_report(NodeId id, RankReport report) {
  Node& node = nodes_.at(id);
  report.node_rank = node.machine_rank;
  if (report.ranks.size() > max_report_bytes(node.info.workers)) report.ranks.clear();
  for (const NodeId viewer : std::exchange(node.viewers, {})) {
    if (nodes_.contains(viewer)) send_(viewer, report);
  }
}

// Nodes of another launcher, or of an older acc, do not say when they are idle.
void Coordinator::watch_for_hangs(const Rounds& rounds) {
  std::set<NodeId> nodes;
  for (const auto& [own_node, round] : rounds) {
    const auto node = nodes_.find(own_node.local_id);
    if (node != nodes_.end() && node->second.info.protocol >= kProtocolOfHang) nodes.insert(node->first);
  }
  const int all = rounds.empty() ? 0 : rounds.front().second.num_machines;
  const bool is_whole = static_cast<int>(nodes.size()) == all;
  hang_.begin(std::move(nodes), is_whole);
}

void Coordinator::tell_of_hang(const std::optional<JobHang>& hang) {
  if (!hang) return;
  JobHang message = *hang;
  message.round = rounds_;
  // Node 0 may answer during the call.
  const std::set<NodeId> nodes = hang_.nodes();
  for (const NodeId id : nodes) send_(id, message);
}

void Coordinator::on_lost(NodeId id, const std::string& reason, bool has_ended) {
  const auto node = nodes_.find(id);
  if (node == nodes_.end()) return;
  lose(id,
       fmt::format("{} was lost: {}", name_of(node->second.info),
                   has_ended ? "its connection closed" : reason),
       has_ended);
}

void Coordinator::on_ended(const StoreAddress& address) {
  if (absent_nodes_.end(address, count(&Node::member))) count_again();
  if (phase_ == Phase::gathering || phase_ == Phase::ending) meet_when_all_ready();
}

void Coordinator::on_silence(NodeId id, const Silence& silence) {
  const auto node = nodes_.find(id);
  if (node == nodes_.end()) return;
  node->second.silent = !silence.is_over;
  const auto host = nodes_.find(0);
  send_(0, Waiting{.text = silence_text(name_of(node->second.info), silence),
                   .spare = host != nodes_.end() && host->second.spare});
}

std::chrono::milliseconds Coordinator::node_timeout() const {
  return options_.plan.timeout_of_node(phase_ != Phase::running || survives_loss());
}

std::optional<RoundOver> Coordinator::end_without_host(const Leave& leave) const {
  if (phase_ != Phase::running || finishing_ || survives_loss()) return std::nullopt;
  return job_over(
      fmt::format("the node that hosts the job has left: {}; the job needs all its nodes", leave.reason),
      leave.exit_code);
}

NodeMessage Coordinator::last_message(const std::string& reason) const {
  if (phase_ == Phase::running && !survives_loss()) return RoundEnds{job_over(reason)};
  return Dropped{reason};
}

bool Coordinator::survives_loss() const {
  return options_.plan.survives_loss(options_.max_restarts - restarts_);
}

void Coordinator::lose(NodeId id, const std::string& text, bool has_ended, int code) {
  const Node node = nodes_.at(id);
  forget(id);
  if (phase_ == Phase::over) return;
  const bool has_succeeded = node.done && phase_ == Phase::running;
  // The others need it no more, and a round that loses a node is over.
  if (node.in_backend && has_succeeded) departed_.push_back(in_backend(node.info, id));
  if (node.in_backend && !has_succeeded) backend_.remove(in_backend(node.info, id));
  if (node.member && !has_succeeded) full_ = false;
  if (!node.member) return phase_ == Phase::running ? void() : meet_when_all_ready();
  if (has_succeeded) succeeded_nodes_.push_back(node.info);
  if (finishing_) return;
  // One whose workers have succeeded may be in another round, too, if there can be one without this node.
  const bool can_be_led_elsewhere = options_.plan.backend != RendezvousKind::static_ && survives_loss();
  const bool may_go_on = !has_succeeded || can_be_led_elsewhere;
  const bool has_entered = node.entered || !can_be_led_elsewhere;
  if (!has_ended && may_go_on) absent_nodes_.add_silent(node.info, has_entered);
  if (has_ended && !has_succeeded && can_be_led_elsewhere) {
    absent_nodes_.add_ended(node.info, has_entered);
    count_again();
  }
  if (is_smaller_part()) return isolate(text);
  if (phase_ != Phase::running) return meet_when_all_ready();
  if (has_succeeded) return finish_when_all_done();
  group_changed(text, code);
}

bool Coordinator::is_smaller_part() const {
  return absent_nodes_.is_smaller_part(count(&Node::member));
}

bool Coordinator::may_be_led_elsewhere() const {
  return absent_nodes_.may_be_led_elsewhere(count(&Node::member));
}

void Coordinator::isolate(const std::string& text) {
  for (auto& [id, node] : nodes_) {
    if (!std::exchange(node.in_backend, false)) continue;
    backend_.remove(in_backend(node.info, id));
    pending_.insert(id);
  }
  group_changed(fmt::format(
      "{}; {} of {} nodes are silent, and the smaller part of a partitioned network stops its workers", text,
      absent_nodes_.size(), absent_nodes_.size() + count(&Node::member)));
}

void Coordinator::group_changed(const std::string& text, int code) {
  if (phase_ != Phase::running || finishing_) return;
  full_ = false;
  if (!survives_loss()) return end_job(job_over(text + "; the job needs all its nodes", code));
  if (options_.plan.min_nodes == options_.plan.max_nodes) ++restarts_;
  end_round({.restart = true, .text = text});
}

void Coordinator::on_round(Rounds rounds) {
  if (phase_ != Phase::gathering) return;
  if (is_smaller_part()) {
    phase_ = Phase::ending;
    return;
  }
  // The backend has the address at which this node reaches the store; workers use the configured endpoint.
  if (options_.plan.backend == RendezvousKind::static_) {
    for (auto& [node, round] : rounds) {
      round.master_addr = options_.plan.endpoint_host;
      round.master_port = options_.plan.endpoint_port;
    }
  }
  phase_ = Phase::running;
  finishing_ = false;
  absent_nodes_.begin_round();
  succeeded_nodes_.clear();
  rounds_ = std::max(rounds_, latest_round_) + 1;
  for (auto& [id, node] : nodes_) node.member = false;
  watch_for_hangs(rounds);
  successors_ = find_successors(rounds);
  find_addresses(rounds);
  const std::vector<std::string> node_addresses = addresses_of_nodes();
  full_ = !rounds.empty() && rounds.front().second.num_machines >= options_.plan.max_nodes;
  for (const auto& [own_node, round] : rounds) {
    const auto node = nodes_.find(own_node.local_id);
    if (node == nodes_.end()) continue;
    node->second.member = node->second.in_round = true;
    node->second.entered = node->second.info.protocol < kProtocolOfEntry;
    node->second.ready = node->second.spare = false;
    node->second.done = false;
    node->second.machine_rank = round.machine_rank;
    node->second.first_rank = round.first_rank;
    node->second.viewers.clear();
    not_ready_.insert(own_node.local_id);
    not_done_.insert(own_node.local_id);
    send_(own_node.local_id,
          RoundBegins{.number = rounds_,
                      .ready = {round, restarts_},
                      .successors = successors_,
                      .coordinator = nodes_.contains(0) ? nodes_.at(0).info : NodeInfo{},
                      .nodes = static_cast<int>(rounds.size()),
                      .clients = round.machine_rank == 0 ? addresses_ : std::vector<std::string>(),
                      .addresses = own_node.local_id == 0 || index_among(successors_, node->second.info)
                                       ? node_addresses
                                       : std::vector<std::string>(),
                      .stall = stall_.stall()});
  }
  for (const auto& [id, node] : nodes_) {
    if (node.ready) wait_as_spare(id, "all places of the job are taken: this node is a spare");
  }
}

// At another launcher's store, or in a file, whole rounds can be without nodes of ours.
void Coordinator::on_missing(const std::string& text, bool spare) {
  backend_missing_ = text;
  for (auto& [id, node] : nodes_) {
    if (node.ready && std::exchange(node.spare, spare) != spare)
      send_(id, Waiting{.text = text, .successors = successors_, .spare = spare});
  }
}

void Coordinator::end_round(const RoundOver& verdict) {
  phase_ = Phase::ending;
  for (const OwnNode& node : std::exchange(departed_, {})) backend_.remove(node);
  // What they have done counts no more, and they come from anywhere.
  if (!succeeded_nodes_.empty()) full_ = false;
  for (const auto& [id, node] : nodes_) {
    if (node.in_round) send_(id, RoundEnds{verdict});
  }
}

void Coordinator::end_job(const RoundOver& verdict) {
  if (phase_ == Phase::over) return;
  phase_ = Phase::over;
  backend_.close();
  send_to_all(RoundEnds{verdict});
}

void Coordinator::give_up(const std::string& reason) {
  end_job(job_over(reason));
}

void Coordinator::stop_expecting() {
  if (std::exchange(survivors_, 0) > 0 && phase_ == Phase::gathering) meet_when_all_ready();
}

// Waits while the nodes that are absent may have met elsewhere, and for all connected nodes and survivors:
// each that is not ready would end the round as soon as it began.
void Coordinator::meet_when_all_ready() {
  if (is_smaller_part() || !not_ready_.empty() || survivors_ > 0) return;
  const bool stopped = std::exchange(phase_, Phase::gathering) == Phase::ending;
  if (stopped) options_.before_round();
  for (const NodeId id : std::exchange(pending_, {})) {
    Node& node = nodes_.at(id);
    backend_.add(in_backend(node.info, id));
    node.in_backend = true;
  }
  if (stopped) backend_.next_round();
}

void Coordinator::finish_when_all_done() {
  if (!not_done_.empty() || finishing_) return;
  finishing_ = true;
  backend_.finish([this] {
    if (phase_ == Phase::over) return;
    phase_ = Phase::over;
    succeeded_ = true;
    backend_.close();
    send_to_all(JobEnds{});
  });
}

int Coordinator::count(bool Node::* mark) const {
  return static_cast<int>(
      std::ranges::count_if(nodes_, [mark](const auto& entry) { return entry.second.*mark; }));
}

void Coordinator::find_addresses(const Rounds& rounds) {
  addresses_.clear();
  for (const auto& [own_node, round] : rounds) {
    const auto node = nodes_.find(own_node.local_id);
    const bool all_ours = round.num_machines == static_cast<int>(rounds.size());
    if (node == nodes_.end() || !all_ours || !is_seen_directly(node->second.info)) return addresses_.clear();
    const std::vector<std::string>& addresses = node->second.info.addresses;
    addresses_.insert(addresses_.end(), addresses.begin(), addresses.end());
  }
  addresses_ = unless_too_long(std::move(addresses_));
}

std::vector<std::string> Coordinator::addresses_of_nodes() const {
  std::vector<std::string> result;
  for (const auto& [id, node] : nodes_) {
    if (!is_seen_directly(node.info)) return {};
    result.insert(result.end(), node.info.addresses.begin(), node.info.addresses.end());
  }
  return unless_too_long(std::move(result));
}

std::vector<NodeInfo> Coordinator::find_successors(const Rounds& rounds) const {
  std::vector<std::pair<int, NodeInfo>> sorted;
  for (const auto& [own_node, round] : rounds) {
    const auto node = nodes_.find(own_node.local_id);
    if (own_node.local_id == 0 || node == nodes_.end()) continue;
    sorted.emplace_back(round.machine_rank, node->second.info);
    sorted.back().second.addresses.clear();
  }
  std::ranges::sort(sorted, {}, [](const auto& entry) { return entry.first; });
  std::vector<NodeInfo> result;
  for (auto& [rank, info] : sorted) {
    if (result.size() < kMaxSuccessors) result.push_back(std::move(info));
  }
  return result;
}

std::string Coordinator::missing() const {
  std::string names;
  int count = 0;
  for (const auto& [id, node] : nodes_) {
    if (!node.ready) continue;
    if (++count > 4) continue;
    names += fmt::format("{}{} ({})", count == 1 ? "" : ", ", node.info.host, node.info.addr);
  }
  if (count > 4) names += fmt::format(" and {} more", count - 4);
  const int needed = options_.plan.min_nodes;
  std::string text = fmt::format("{} of {} nodes are here: {}", count, needed, names);
  if (is_smaller_part()) {
    text += fmt::format("; {} {} silent, and may be the larger part of a partitioned network",
                        absent_nodes_.size(), absent_nodes_.size() == 1 ? "is" : "are");
  } else if (!backend_missing_.empty()) {
    text += "; " + backend_missing_;
  }
  return text;
}

void Coordinator::send_to_all(const NodeMessage& message) {
  for (const auto& [id, node] : nodes_) send_(id, message);
}

}  // namespace acc::launcher
