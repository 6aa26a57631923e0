// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/cluster_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/rendezvous/connected.hpp"
#include "acc/rendezvous/hosting.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {
namespace {

constexpr auto kReminderInterval = std::chrono::seconds(10);

}  // namespace

ClusterNode::ClusterNode(net::io_context& loop, const LaunchPlan& plan)
    : node_(loop, plan,
            {.on_message = [this](const NodeMessage& message) { on_message(message); },
             .on_member = [this](const std::shared_ptr<Member>& member) { on_member(member); },
             .on_key_lost = [this](const std::string& address,
                                   bool has_lapsed) { return on_key_lost(address, has_lapsed); },
             .on_notice = [this](const std::string& text) { emit(Notice{text}); },
             .on_failure = [this](const std::string& reason, int code) { give_up(reason, code); }}),
      reminder_(loop),
      state_(std::make_unique<Idle>(node_)) {}

// Calls of the agent.

void ClusterNode::join() {
  // The agent joins as it was told, and the job has ended since.
  if (end_) return emit(*end_);
  node_.wants_round = true;
  begin_join_timeout();
  if (!state_->is_idle()) return state_->ask_for_round();
  search(Searching::Start::beginning,
         "the job is to be found at " +
             (node_.settings.store_file ? node_.settings.store_file->string() : node_.endpoint()));
}

void ClusterNode::fail(const RoundOver& failure) {
  state_->send(WorkerFailed{node_.last_round.number(), failure});
}

void ClusterNode::finish() {
  state_->send(WorkersDone{node_.last_round.number()});
}

void ClusterNode::announce_end(int signal) {
  if (!state_->host() && node_.last_round.coordinator().protocol < kProtocolOfEndNotice) return;
  state_->send(EndNotice{.signal = signal, .host = node_.ports.own_names().host_name});
}

void ClusterNode::stop_job(int code) {
  if (stops_alone().empty()) state_->send(StopJob{code});
}

std::string ClusterNode::stops_alone() const {
  if (node_.settings.store_file) return "the nodes meet in a file";
  if (const Host* host = state_->host()) return host->serves_store() ? "" : "torchrun hosts the job";
  if (is_spare_) return "this node is a spare";
  if (node_.last_round.is_unknown()) return "the nodes have not met";
  if (state_->coordinator_address().empty()) return "the node that leads the job is lost";
  const bool is_older = node_.last_round.coordinator().protocol < kProtocolOfStop;
  return is_older ? "the node that leads the job runs an older acc" : "";
}

bool ClusterNode::tell_progress(const std::vector<RankProgress>& ranks) {
  if (state_->host() || node_.last_round.coordinator().protocol < kProtocolOfProgress) return false;
  state_->send(NodeProgress{.round = node_.last_round.number(), .ranks = ranks});
  return true;
}

void ClusterNode::tell_slow(const std::vector<SlowRank>& ranks) {
  if (state_->host()) state_->send(SlowRanks{node_.last_round.number(), ranks});
}

std::string ClusterNode::want_ranks() {
  std::string reason = no_ranks_reason(kProtocolOfReports);
  if (reason.empty()) state_->send(RanksWanted{node_.last_round.number()});
  return reason;
}

void ClusterNode::report_ranks(const std::string& ranks) {
  // Before it has introduced itself to the next coordinator it must say nothing else.
  if (node_.in_round) state_->send(RankReport{.round = node_.last_round.number(), .ranks = ranks});
}

std::string ClusterNode::tell_hang(const NodeHang& hang) {
  std::string reason = no_ranks_reason(kProtocolOfHang);
  if (!reason.empty()) return reason;
  NodeHang message = hang;
  message.round = node_.last_round.number();
  state_->send(message);
  return {};
}

// Why this node learns nothing of the ranks of the others; `protocol` has the messages for it.
std::string ClusterNode::no_ranks_reason(int protocol) const {
  if (!node_.in_round) return "the nodes have not met";
  if (node_.settings.store_file) return "the nodes meet in a file";
  if (const Host* host = state_->host(); host && !host->serves_store()) return "torchrun hosts the job";
  const bool is_older = !state_->host() && node_.last_round.coordinator().protocol < protocol;
  return is_older ? "the node that leads the job runs an older acc" : "";
}

void ClusterNode::leave(const std::string& reason, int code) {
  node_.wants_round = false;
  reminder_.cancel();
  const bool is_early = !std::exchange(node_.is_over, true);
  leaving_ = is_early && state_->host() != nullptr;
  // First, so that the next job of this name does not find the one that ends.
  if (node_.coordinator_key) node_.coordinator_key->release();
  state_->leave({.reason = reason.empty() ? "it has ended" : reason, .exit_code = code}, is_early, [this] {
    if (!node_.coordinator_key) return emit(Left{});
    node_.coordinator_key->release([this] { emit(Left{}); });
  });
}

// Transitions.

void ClusterNode::search(Searching::Start start, const std::string& reason) {
  Searching::Events events;
  events.on_hosting = [this](std::unique_ptr<Host> new_host, const std::string& next_reason) {
    host(std::move(new_host), next_reason);
  };
  events.on_connected = [this](net::tcp::socket socket, const StoreAddress& address) {
    const auto connection = std::make_shared<NodeConnection>(std::move(socket), node_.node_timeout());
    connect(connection, std::nullopt, "the coordinator is at " + to_string(address));
    connection->start();
  };
  enter(std::make_unique<Searching>(node_, start, std::move(events)), reason);
}

void ClusterNode::search_later(Searching::Start start, const std::string& reason) {
  enter(std::make_unique<AskingLater>(node_, [this, start, reason] { search(start, reason); }), reason);
}

void ClusterNode::connect(std::shared_ptr<NodeConnection> connection, std::optional<Candidates> candidates,
                          const std::string& reason) {
  Connected::Events events;
  events.on_lost = [this](const ConnectionLoss& loss) { on_coordinator_lost(loss); };
  events.on_dropped = [this](const std::string& next_reason) { on_dropped(next_reason); };
  events.on_moved = [this](const StoreAddress& address, bool is_another_job) {
    on_redirected(address, is_another_job);
  };
  events.on_full = [this] { wait_for_room(); };
  enter(std::make_unique<Connected>(node_, std::move(connection), std::move(candidates), std::move(events)),
        reason);
}

void ClusterNode::host(std::unique_ptr<Host> new_host, const std::string& reason) {
  redirect_later_nodes(node_.ports.store_address());
  enter(std::make_unique<Hosting>(node_, std::move(new_host)), reason);
}

void ClusterNode::look_for_job(CoordinatorLost::FirstStep first_step, Candidates candidates,
                               const std::string& reason) {
  CoordinatorLost::Events events;
  events.on_succession = [this](const std::string& next_reason) { succeed(next_reason); };
  events.on_found = [this](std::shared_ptr<NodeConnection> connection, const StoreAddress& address,
                           Candidates remaining) {
    node_.coordinator_address = to_string(address);
    redirect_later_nodes(address);
    connect(std::move(connection), std::move(remaining), node_.coordinator_address + " answers");
  };
  events.on_outdated = [this] { return host_again(); };
  enter(std::make_unique<CoordinatorLost>(node_, first_step, std::move(candidates), std::move(events)),
        reason);
}

void ClusterNode::succeed(const std::string& reason) {
  const NodeInfo self = node_.introduction();
  std::vector<StoreAddress> members = node_.last_round.other_members(self);
  for (const auto& member : node_.pending_members) std::erase(members, address_of(member->hello.node));
  node_.last_round.ask({});
  const bool counts_restart = node_.settings.min_nodes == node_.settings.max_nodes;
  std::unique_ptr<Host> new_host;
  try {
    new_host = host_at_own_port(node_, node_.last_round.succession(self, counts_restart, node_.absent_nodes));
  } catch (const Error& error) {
    return give_up(error.what(), exit_code(error.kind()));
  }
  redirect_later_nodes(node_.ports.store_address());
  enter(std::make_unique<Succeeding>(
            node_, std::move(new_host), std::move(members),
            [this](const StoreAddress& address, const std::string& next_reason, bool is_another_job) {
              move_to(address, next_reason, is_another_job);
            }),
        reason);
}

void ClusterNode::wait_for_room() {
  node_.last_try = "all places of the job are taken, by nodes of other addresses";
  // Without their host, all nodes of a job that needs all of them are too few.
  const bool needs_all = node_.settings.min_nodes == node_.settings.max_nodes;
  node_.last_round.note_full(node_.settings.max_nodes - (needs_all ? 1 : 0));
  if (!std::exchange(told_no_room_, true)) emit(Notice{node_.last_try + ": this node is a spare"});
  // The job runs, and this node waits for as long as it does.
  begin_join_timeout();
  if (auto candidates = state_->candidates())
    return look_for_job(CoordinatorLost::FirstStep::pause, std::move(*candidates), node_.last_try);
  search_later(Searching::Start::endpoint, node_.last_try);
}

void ClusterNode::give_up(const std::string& reason, int code) {
  if (std::exchange(node_.is_over, true)) return;
  reminder_.cancel();
  enter(std::make_unique<Idle>(node_), reason);
  end_ = RoundOver{.text = reason, .exit_code = code};
  emit(*end_);
}

void ClusterNode::enter(std::unique_ptr<NodeState> next, const std::string& reason) {
  log::debug("rendezvous: {} -> {}: {}", state_->name(), next->name(), reason);
  set_spare(false);
  state_->retire();
  retired_states_.push_back(std::exchange(state_, std::move(next)));
  net::post(node_.loop, guard_([this] { retired_states_.clear(); }));
  state_->start();
}

// How a node loses its coordinator.

void ClusterNode::on_coordinator_lost(const ConnectionLoss& loss) {
  if (node_.is_over) return;
  const std::string reason = fmt::format("the node that hosts the job was lost: {}",
                                         loss.peer_has_ended ? "its connection closed" : loss.reason);
  node_.last_try = reason;
  if (auto candidates = state_->candidates()) {
    // The lost node no longer led the job, or not yet, or has no place for this one.
    if (loss.peer_has_ended && node_.coordinator_address == to_string(node_.last_round.lost_address()))
      node_.last_round.note_closed();
    return look_for_job(CoordinatorLost::FirstStep::pause, std::move(*candidates), reason);
  }
  if (node_.last_round.is_unknown()) {
    if (node_.wants_round) return search_later(Searching::Start::beginning, reason);
    return enter(std::make_unique<Idle>(node_), reason);
  }
  if (node_.in_round && !node_.survives_loss()) return give_up(reason, exit_code(ErrorKind::rendezvous));
  end_round(reason);
  begin_looking(loss.peer_has_ended, reason);
}

// The others have gone on: this node is a new one to them.
void ClusterNode::on_dropped(const std::string& reason) {
  node_.last_round.forget();
  redirect_pending_members(node_);
  end_round(reason + ", and the others went on without it");
  begin_looking(false, reason);
}

void ClusterNode::begin_looking(bool was_closed, const std::string& reason) {
  node_.last_round.lose_coordinator(parse_address(node_.coordinator_address, ""), was_closed);
  if (!node_.wants_round) node_.join_deadline = RunningClock::now() + node_.settings.join_timeout;
  look_for_job(CoordinatorLost::FirstStep::all, {}, reason);
}

// A node that has lost the coordinator tells at the endpoint which successor answers, before that one leads;
// so a coordinator may yield to a node that still asks it. If it has dropped that one, nobody else would lead
// those that it has sent there: it leads them on when they are sent back.
void ClusterNode::on_redirected(const StoreAddress& coordinator, bool is_another_job) {
  if (coordinator != node_.ports.store_address())
    return move_to(coordinator, "redirected by the coordinator", is_another_job);
  if (node_.is_over) return;
  const std::string reason = "the coordinator yields to this node, which does not lead the job yet";
  end_round(reason);
  node_.refusing_address = node_.coordinator_address;
  if (node_.last_round.has_coordinator(node_.introduction()) && !node_.is_etcd()) return succeed(reason);
  const std::optional<Candidates> candidates = state_->candidates();
  if (!candidates) node_.last_round.lose_coordinator(parse_address(node_.coordinator_address, ""), false);
  // It counts this node no more. Others that it has sent here come while this one waits.
  node_.last_round.ask({});
  look_for_job(CoordinatorLost::FirstStep::pause, candidates.value_or(Candidates{}), reason);
}

// Another node leads the job. If it has begun anew, nobody may go on with the last round: those who do could
// not know that this node is with the other job.
void ClusterNode::move_to(const StoreAddress& coordinator, const std::string& reason, bool is_another_job) {
  if (node_.is_over) return;
  if (is_another_job) node_.last_round.forget();
  node_.coordinator_address = to_string(coordinator);
  if (node_.coordinator_key) node_.coordinator_key->release();
  if (Host* host = state_->host()) {
    node_.absent_nodes = host->coordinator().absent_nodes().with_earlier();
    std::unique_ptr<StoreServer> store = host->move_to(coordinator, is_another_job);
    // That of the endpoint is kept, and redirects already.
    if (!redirect_) redirect_ = std::move(store);
  }
  end_round("the job runs already, on other nodes");
  std::optional<Candidates> candidates = state_->candidates();
  if (!candidates) {
    node_.last_round.forget_coordinator();
    candidates = {.endpoint_asked = false};
  }
  node_.last_round.ask({});
  redirect_pending_members(node_);
  candidates->addresses.insert(candidates->addresses.begin(), coordinator);
  look_for_job(CoordinatorLost::FirstStep::next, std::move(*candidates),
               fmt::format("the job is led at {}: {}", node_.coordinator_address, reason));
}

// This node has yielded to one that has ended since, and its own store would send all nodes there until the
// join timeout. Others that may lead the job on are asked first.
bool ClusterNode::host_again() {
  const LastRound& round = node_.last_round;
  const bool may_host = redirect_ && (round.number() == 0 || round.is_last_node());
  if (!may_host || !round.candidates(node_.introduction()).empty()) return false;
  redirect_.reset();
  search(Searching::Start::beginning, "the coordinator at " + node_.coordinator_address + " has ended");
  return true;
}

// Serves nodes that ask the store of a host that has yielded.
void ClusterNode::redirect_later_nodes(const StoreAddress& coordinator) {
  if (redirect_) redirect_->set(coordinator_key(node_.plan.run_id), to_string(coordinator));
}

// What others send.

void ClusterNode::on_message(const NodeMessage& message) {
  if (const auto* begins = std::get_if<RoundBegins>(&message)) on_round_begins(*begins);
  if (const auto* ends = std::get_if<RoundEnds>(&message)) on_round_ends(ends->verdict);
  if (const auto* waiting = std::get_if<Waiting>(&message)) {
    if (!waiting->successors.empty()) node_.last_round.set_successors(waiting->successors);
    set_spare(waiting->spare);
    emit(Notice{waiting->text});
  }
  if (const auto* notice = std::get_if<EndNotice>(&message)) emit(*notice);
  if (const auto* progress = std::get_if<NodeProgress>(&message)) ranks().progress(*progress);
  on_rank_message(message);
  if (std::holds_alternative<JobEnds>(message)) {
    log::debug("rendezvous: all workers of all nodes have succeeded");
    node_.is_over = true;
    emit(JobDone{});
  }
}

// Those of another round are late.
void ClusterNode::on_rank_message(const NodeMessage& message) {
  const int round = node_.last_round.number();
  if (const auto* slow = std::get_if<SlowRanks>(&message); slow && slow->round == round)
    ranks().slow_ranks(slow->ranks);
  if (const auto* wanted = std::get_if<RanksWanted>(&message); wanted && wanted->round == round)
    ranks().ranks_wanted();
  if (const auto* peers = std::get_if<Peers>(&message); peers && peers->round == round)
    ranks().peers(peers->nodes);
  if (const auto* report = std::get_if<RankReport>(&message); report && report->round == round)
    ranks().report(*report);
  if (const auto* hang = std::get_if<JobHang>(&message); hang && hang->round == round) ranks().hang(*hang);
}

void ClusterNode::on_round_begins(const RoundBegins& message) {
  const Round& round = message.ready.round;
  log::debug("rendezvous: round {} begins, this node is {} of {}, its workers are ranks {} and up of {}",
             message.number, round.machine_rank, round.num_machines, round.first_rank, round.world_size);
  node_.ports.begin_round(message, state_->coordinator_address());
  node_.last_round.begin(message);
  node_.refusing_address.clear();
  node_.absent_nodes.clear();
  node_.wants_round = false;
  node_.in_round = true;
  if (message.coordinator.protocol >= kProtocolOfEntry) state_->send(RoundEntered{message.number});
  is_spare_ = told_no_room_ = false;
  reminder_.cancel();
  state_->on_round();
  emit(message.ready);
}

void ClusterNode::on_round_ends(const RoundOver& verdict) {
  node_.in_round = false;
  log::debug("rendezvous: round {} is over, {}: {}", node_.last_round.number(),
             verdict.restart ? "the nodes meet again" : "as is the job",
             verdict.text.empty() ? "a worker failed" : verdict.text);
  if (!verdict.restart) {
    node_.is_over = true;
    reminder_.cancel();
    end_ = verdict;
  }
  emit(verdict);
}

void ClusterNode::on_member(const std::shared_ptr<Member>& member) {
  if (leaving_) return member->connection->close();
  if (member->hello.is_coordinator) return on_claim(*member);
  // A node's history is believed only if it can have been in the last round.
  if (node_.last_round.number() > 0 && !is_of_last_round(node_, *member)) member->hello.history = {};
  state_->on_member(member);
}

// The claim to lead the job is believed of a node of the last round only. Before the first round, when this
// node may have replaced a lost host, it is believed of the node that this host's own store names, or that
// has proven the secret. With etcd the key decides; in a static job all nodes know the host.
void ClusterNode::on_claim(const Member& claimant) {
  const NodeInfo& node = claimant.hello.node;
  const bool was_in_round = node_.last_round.number() > 0;
  const Host* host = state_->host();
  const bool leads = host && !host->coordinator().is_smaller_part();
  const bool is_successor =
      was_in_round && is_of_last_round(node_, claimant) && (!leads || node_.last_round.has_successor(node));
  const bool is_named =
      !was_in_round && host && (claimant.is_proven || host->is_running_at(to_string(address_of(node))));
  const bool yields = !node_.is_static() && (host || state_->candidates()) && (is_successor || is_named);
  if (!yields && leads && was_in_round) claimant.connection->dismiss(Full{});
  claimant.connection->close();
  if (yields) move_to(address_of(node), "redirected by its coordinator");
}

// A successor has the key because the job goes on there. A new node took it when it was free, and knows
// nothing of the running job; it notices that its key is taken, and joins. Where too few nodes are left for a
// round, the others may have begun anew with it.
EtcdCoordinatorKey::Loss ClusterNode::on_key_lost(const std::string& address, bool has_lapsed) {
  using Loss = EtcdCoordinatorKey::Loss;
  const Host* host = state_->host();
  const auto owner = parse_address(address, "");
  if (!host || !owner || node_.is_over) return Loss::accept;
  const Coordinator& coordinator = host->coordinator();
  const bool leads =
      node_.last_round.number() > 0 && !coordinator.is_smaller_part() && coordinator.has_enough_nodes();
  // The coordinator that this node has replaced has found the key free, and waits.
  if (leads && *owner == node_.last_round.lost_address()) return Loss::take_back;
  const bool is_new_host = has_lapsed && !node_.last_round.has_leader_at(*owner);
  if (is_new_host && leads) {
    emit(
        Notice{fmt::format("etcd did not hear from this node, and a new one at {} has taken the job's key: "
                           "it is taken back",
                           address)});
    return Loss::take_back;
  }
  // With the new one this part would begin another job.
  if (is_new_host && coordinator.may_be_led_elsewhere()) return Loss::wait;
  move_to(*owner, "etcd's key is another node's");
  return Loss::accept;
}

// Waiting.

void ClusterNode::end_round(const std::string& reason) {
  if (std::exchange(node_.in_round, false)) emit(RoundOver{.restart = true, .text = reason});
}

void ClusterNode::begin_join_timeout() {
  node_.join_deadline = RunningClock::now() + node_.settings.join_timeout;
  remind_later();
}

// The timeout begins when a place may be free, or the coordinator that has said so is lost.
void ClusterNode::set_spare(bool spare) {
  if (std::exchange(is_spare_, spare) == spare || !node_.wants_round || node_.is_over) return;
  spare ? static_cast<void>(reminder_.cancel()) : begin_join_timeout();
}

void ClusterNode::remind_later() {
  reminder_.expires_at(std::min(RunningClock::now() + kReminderInterval, node_.join_deadline));
  reminder_.async_wait(guard_([this](const boost::system::error_code& error) {
    if (!error && node_.wants_round && !node_.is_over) remind();
  }));
}

void ClusterNode::remind() {
  using std::chrono::seconds;
  const auto now = RunningClock::now();
  const std::string missing = state_->missing();
  if (now >= node_.join_deadline) {
    const auto waited = std::chrono::duration_cast<seconds>(node_.settings.join_timeout);
    const std::string reason =
        fmt::format("the nodes of the job did not meet within {} s: {}", waited.count(), missing);
    return state_->end_job(reason) ? void() : give_up(reason, exit_code(ErrorKind::rendezvous));
  }
  const auto remaining = std::chrono::duration_cast<seconds>(node_.join_deadline - now);
  const std::string text =
      fmt::format("waiting for the nodes of the job, {} s left: {}", remaining.count(), missing);
  if (state_->announce_waiting(text)) emit(Notice{text});
  remind_later();
}

}  // namespace acc::launcher
