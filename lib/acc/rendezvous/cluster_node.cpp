// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/cluster_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/rendezvous/connected.hpp"
#include "acc/rendezvous/hosting.hpp"

namespace acc::launcher {
namespace {

constexpr auto kReminderInterval = std::chrono::seconds(10);

}  // namespace

ClusterNode::ClusterNode(boost::asio::io_context& loop, const LaunchPlan& plan)
    : node_(loop, plan,
            {.message = [this](const NodeMessage& message) { on_message(message); },
             .member = [this](const std::shared_ptr<Member>& member) { on_member(member); },
             .key_lost = [this](const std::string& address,
                                bool lapsed) { return on_key_lost(address, lapsed); },
             .notice = [this](const std::string& text) { emit(Notice{text}); },
             .failed = [this](const std::string& why, int code) { give_up(why, code); }}),
      reminder_(loop),
      state_(std::make_unique<Idle>(node_)) {}

// Calls of the agent.

void ClusterNode::join() {
  node_.wants_round = true;
  begin_join_timeout();
  if (!state_->is_idle()) return state_->ask_for_round();
  search(Searching::From::beginning,
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
  state_->send(EndNotice{.signal = signal, .host = node_.ports.own().host_name});
}

void ClusterNode::stop_job(int code) {
  if (stops_alone().empty()) state_->send(StopJob{code});
}

std::string ClusterNode::stops_alone() const {
  if (node_.settings.store_file) return "the nodes meet in a file";
  if (const Host* own = state_->host()) return own->serves_store() ? "" : "torchrun hosts the job";
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
  std::string reason = why_no_reports();
  if (reason.empty()) state_->send(RanksWanted{node_.last_round.number()});
  return reason;
}

void ClusterNode::report_ranks(const std::string& ranks) {
  // Before it has introduced itself to the next coordinator it must say nothing else.
  if (node_.in_round) state_->send(RankReport{.round = node_.last_round.number(), .ranks = ranks});
}

std::string ClusterNode::why_no_reports() const {
  if (!node_.in_round) return "the nodes have not met";
  if (node_.settings.store_file) return "the nodes meet in a file";
  if (const Host* own = state_->host(); own && !own->serves_store()) return "torchrun hosts the job";
  const bool is_older = !state_->host() && node_.last_round.coordinator().protocol < kProtocolOfReports;
  return is_older ? "the node that leads the job runs an older acc" : "";
}

void ClusterNode::leave(const std::string& why, int code) {
  node_.wants_round = false;
  reminder_.cancel();
  const bool early = !std::exchange(node_.over, true);
  leaving_ = early && state_->host() != nullptr;
  // First, so that the next job of this name does not find the one that ends.
  if (node_.coordinator_key) node_.coordinator_key->release();
  state_->leave({.why = why.empty() ? "it has ended" : why, .exit_code = code}, early, [this] {
    if (!node_.coordinator_key) return emit(Left{});
    node_.coordinator_key->release([this] { emit(Left{}); });
  });
}

// Transitions.

void ClusterNode::search(Searching::From from, const std::string& why) {
  Searching::Events events;
  events.hosts = [this](std::unique_ptr<Host> own, const std::string& reason) {
    host(std::move(own), reason);
  };
  events.connected = [this](boost::asio::ip::tcp::socket socket, const StoreAddress& address) {
    const auto connection = std::make_shared<NodeConnection>(std::move(socket), node_.node_timeout());
    connect(connection, std::nullopt, "the coordinator is at " + to_string(address));
    connection->start();
  };
  enter(std::make_unique<Searching>(node_, from, std::move(events)), why);
}

void ClusterNode::search_later(Searching::From from, const std::string& why) {
  enter(std::make_unique<AskingLater>(node_, [this, from, why] { search(from, why); }), why);
}

void ClusterNode::connect(std::shared_ptr<NodeConnection> connection, std::optional<Candidates> others,
                          const std::string& why) {
  Connected::Events events;
  events.lost = [this](const ConnectionLoss& loss) { on_coordinator_lost(loss); };
  events.dropped = [this](const std::string& reason) { on_dropped(reason); };
  events.moved = [this](const StoreAddress& address) { move_to(address, "redirected by the coordinator"); };
  events.full = [this] { wait_for_place(); };
  enter(std::make_unique<Connected>(node_, std::move(connection), std::move(others), std::move(events)), why);
}

void ClusterNode::host(std::unique_ptr<Host> own, const std::string& why) {
  redirect_later_nodes(node_.ports.store_address());
  enter(std::make_unique<Hosting>(node_, std::move(own)), why);
}

void ClusterNode::look_for_job(CoordinatorLost::First first, Candidates candidates, const std::string& why) {
  CoordinatorLost::Events events;
  events.succeeds = [this](const std::string& reason) { succeed(reason); };
  events.found = [this](std::shared_ptr<NodeConnection> connection, const StoreAddress& address,
                        Candidates others) {
    node_.coordinator_address = to_string(address);
    redirect_later_nodes(address);
    connect(std::move(connection), std::move(others), node_.coordinator_address + " answers");
  };
  events.outdated = [this] { return host_again(); };
  enter(std::make_unique<CoordinatorLost>(node_, first, std::move(candidates), std::move(events)), why);
}

void ClusterNode::succeed(const std::string& why) {
  const NodeInfo self = node_.introduction();
  std::vector<StoreAddress> others = node_.last_round.others(self);
  for (const auto& member : node_.pending_members) std::erase(others, address_of(member->hello.node));
  node_.last_round.ask({});
  const bool counts_restart = node_.settings.min_nodes == node_.settings.max_nodes;
  std::unique_ptr<Host> own;
  try {
    own = host_at_own_port(node_, node_.last_round.succession(self, counts_restart));
  } catch (const Error& error) {
    return give_up(error.what(), exit_code(error.kind()));
  }
  redirect_later_nodes(node_.ports.store_address());
  enter(std::make_unique<Succeeding>(
            node_, std::move(own), std::move(others),
            [this](const StoreAddress& address, const std::string& reason) { move_to(address, reason); }),
        why);
}

void ClusterNode::wait_for_place() {
  node_.last_try = "all places of the job are taken, by nodes of other addresses";
  if (!std::exchange(told_no_place_, true)) emit(Notice{node_.last_try + ": this node is a spare"});
  // The job runs, and this node waits for as long as it does.
  begin_join_timeout();
  if (auto candidates = state_->candidates())
    return look_for_job(CoordinatorLost::First::pause, std::move(*candidates), node_.last_try);
  search_later(Searching::From::endpoint, node_.last_try);
}

void ClusterNode::give_up(const std::string& why, int code) {
  if (std::exchange(node_.over, true)) return;
  reminder_.cancel();
  enter(std::make_unique<Idle>(node_), why);
  emit(RoundOver{.text = why, .exit_code = code});
}

void ClusterNode::enter(std::unique_ptr<NodeState> next, const std::string& why) {
  log::debug("rendezvous: {} -> {}: {}", state_->name(), next->name(), why);
  set_spare(false);
  state_->retire();
  left_.push_back(std::exchange(state_, std::move(next)));
  boost::asio::post(node_.loop, guard_([this] { left_.clear(); }));
  state_->start();
}

// How a node loses its coordinator.

void ClusterNode::on_coordinator_lost(const ConnectionLoss& loss) {
  if (node_.over) return;
  const std::string why =
      fmt::format("the node that hosts the job was lost: {}", loss.gone ? "its connection closed" : loss.why);
  node_.last_try = why;
  if (auto candidates = state_->candidates()) {
    // The lost node no longer led the job, or not yet.
    const StoreAddress& lost = node_.last_round.lost_address();
    if (loss.gone && node_.coordinator_address == to_string(lost)) node_.last_round.note_failed(lost, true);
    return look_for_job(CoordinatorLost::First::pause, std::move(*candidates), why);
  }
  if (node_.last_round.is_unknown()) {
    if (node_.wants_round) return search_later(Searching::From::beginning, why);
    return enter(std::make_unique<Idle>(node_), why);
  }
  if (node_.in_round && !node_.survives_loss()) return give_up(why, exit_code(ErrorKind::rendezvous));
  end_round(why);
  begin_looking(loss.gone, why);
}

// The others have gone on: this node is a new one to them.
void ClusterNode::on_dropped(const std::string& why) {
  node_.last_round.forget();
  end_round(why + ", and the others went on without it");
  begin_looking(false, why);
}

void ClusterNode::begin_looking(bool closed, const std::string& why) {
  node_.last_round.lose_coordinator(parse_address(node_.coordinator_address, ""), closed);
  if (!node_.wants_round) node_.join_deadline = RunningClock::now() + node_.settings.join_timeout;
  look_for_job(CoordinatorLost::First::all, {}, why);
}

// Another node leads the job.
void ClusterNode::move_to(const StoreAddress& coordinator, const std::string& why) {
  if (node_.over) return;
  node_.coordinator_address = to_string(coordinator);
  if (node_.coordinator_key) node_.coordinator_key->release();
  if (Host* own = state_->host()) redirect_ = own->move_to(coordinator);
  end_round("the job runs already, on other nodes");
  std::optional<Candidates> candidates = state_->candidates();
  if (!candidates) {
    node_.last_round.forget_coordinator();
    candidates = {.endpoint_asked = false};
  }
  node_.last_round.ask({});
  redirect_pending_members(node_);
  candidates->addresses.insert(candidates->addresses.begin(), coordinator);
  look_for_job(CoordinatorLost::First::next, std::move(*candidates),
               fmt::format("the job is led at {}: {}", node_.coordinator_address, why));
}

// This node has yielded to a successor that ended before a round with both of them began. Its own store would
// send all nodes there until the join timeout. Others that may lead the job on are asked first.
bool ClusterNode::host_again() {
  const LastRound& round = node_.last_round;
  if (!redirect_ || round.number() > 0 || !round.candidates(node_.introduction()).empty()) return false;
  redirect_.reset();
  search(Searching::From::beginning, "the coordinator at " + node_.coordinator_address + " has ended");
  return true;
}

// Serves nodes that ask the store of a host that has yielded.
void ClusterNode::redirect_later_nodes(const StoreAddress& coordinator) {
  if (redirect_) redirect_->set(coordinator_key(node_.plan.run_id), to_string(coordinator));
}

// What others send.

void ClusterNode::on_message(const NodeMessage& message) {
  if (const auto* begins = std::get_if<RoundBegins>(&message)) on_round_begins(*begins);
  if (const auto* ends = std::get_if<RoundEnds>(&message)) on_round_ends(ends->over);
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
    node_.over = true;
    emit(JobDone{});
  }
}

// Those of another round are late.
void ClusterNode::on_rank_message(const NodeMessage& message) {
  const int round = node_.last_round.number();
  if (const auto* slow = std::get_if<SlowRanks>(&message); slow && slow->round == round)
    ranks().slow(slow->ranks);
  if (const auto* wanted = std::get_if<RanksWanted>(&message); wanted && wanted->round == round)
    ranks().wanted();
  if (const auto* peers = std::get_if<Peers>(&message); peers && peers->round == round)
    ranks().peers(peers->nodes);
  if (const auto* report = std::get_if<RankReport>(&message); report && report->round == round)
    ranks().report(*report);
}

void ClusterNode::on_round_begins(const RoundBegins& message) {
  const Round& round = message.ready.round;
  log::debug("rendezvous: round {} begins, this node is {} of {}, its workers are ranks {} and up of {}",
             message.number, round.machine_rank, round.num_machines, round.first_rank, round.world_size);
  node_.ports.begin_round(message, state_->coordinator_address());
  node_.last_round.begin(message);
  node_.wants_round = false;
  node_.in_round = true;
  is_spare_ = told_no_place_ = false;
  reminder_.cancel();
  state_->on_round();
  emit(message.ready);
}

void ClusterNode::on_round_ends(const RoundOver& over) {
  node_.in_round = false;
  log::debug("rendezvous: round {} is over, {}: {}", node_.last_round.number(),
             over.again ? "the nodes meet again" : "as is the job",
             over.text.empty() ? "a worker failed" : over.text);
  if (!over.again) {
    node_.over = true;
    reminder_.cancel();
  }
  emit(over);
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
  const NodeInfo& other = claimant.hello.node;
  const bool was_in_round = node_.last_round.number() > 0;
  const Host* own = state_->host();
  const bool leads = own && !own->coordinator().is_smaller_part();
  const bool is_successor =
      was_in_round && is_of_last_round(node_, claimant) && (!leads || node_.last_round.has_successor(other));
  const bool is_named =
      !was_in_round && own && (claimant.is_proven || own->is_running_at(to_string(address_of(other))));
  const bool yields = !node_.is_static() && (own || state_->candidates()) && (is_successor || is_named);
  if (!yields && leads && was_in_round) claimant.connection->send(Full{});
  claimant.connection->close();
  if (yields) move_to(address_of(other), "redirected by its coordinator");
}

// A successor has the key because the job goes on there. A new node took it when it was free, and knows
// nothing of the running job; it notices that its key is taken, and joins.
bool ClusterNode::on_key_lost(const std::string& address, bool lapsed) {
  const Host* own = state_->host();
  const auto other = parse_address(address, "");
  if (!own || !other || node_.over) return false;
  const bool leads = node_.last_round.number() > 0 && !own->coordinator().is_smaller_part();
  const std::vector<StoreAddress> known = node_.last_round.others(node_.introduction());
  if (lapsed && leads && std::ranges::find(known, *other) == known.end()) {
    emit(
        Notice{fmt::format("etcd did not hear from this node, and a new one at {} has taken the job's key: "
                           "it is taken back",
                           address)});
    return true;
  }
  move_to(*other, "etcd's key is another node's");
  return false;
}

// Waiting.

void ClusterNode::end_round(const std::string& why) {
  if (std::exchange(node_.in_round, false)) emit(RoundOver{.again = true, .text = why});
}

void ClusterNode::begin_join_timeout() {
  node_.join_deadline = RunningClock::now() + node_.settings.join_timeout;
  remind_later();
}

// The timeout begins when a place may be free, or the coordinator that has said so is lost.
void ClusterNode::set_spare(bool spare) {
  if (std::exchange(is_spare_, spare) == spare || !node_.wants_round || node_.over) return;
  spare ? static_cast<void>(reminder_.cancel()) : begin_join_timeout();
}

void ClusterNode::remind_later() {
  reminder_.expires_at(std::min(RunningClock::now() + kReminderInterval, node_.join_deadline));
  reminder_.async_wait(guard_([this](const boost::system::error_code& error) {
    if (!error && node_.wants_round && !node_.over) remind();
  }));
}

void ClusterNode::remind() {
  using std::chrono::seconds;
  const auto now = RunningClock::now();
  const std::string missing = state_->missing();
  if (now >= node_.join_deadline) {
    const auto waited = std::chrono::duration_cast<seconds>(node_.settings.join_timeout);
    const std::string why =
        fmt::format("the nodes of the job did not meet within {} s: {}", waited.count(), missing);
    return state_->end_job(why) ? void() : give_up(why, exit_code(ErrorKind::rendezvous));
  }
  const auto left = std::chrono::duration_cast<seconds>(node_.join_deadline - now);
  const std::string waiting =
      fmt::format("waiting for the nodes of the job, {} s left: {}", left.count(), missing);
  if (state_->announce_waiting(waiting)) emit(Notice{waiting});
  remind_later();
}

}  // namespace acc::launcher
