// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/static_backend.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "acc/base/event_loop.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/base/text.hpp"
#include "acc/rendezvous/store_meeting.hpp"

namespace acc::launcher {
namespace {

constexpr std::size_t kMaxNamed = 8;

}  // namespace

struct StaticBackend::Impl : StoreMeeting {
  Impl(net::io_context& the_loop, Store& the_store, StaticBackendOptions the_options, Events the_events)
      : StoreMeeting(the_loop, the_store, std::move(the_events), [this] { on_store_lost(); }),
        options(std::move(the_options)) {
    request_round();
  }

  void request_round();
  void ask_soon();
  void on_store_lost();
  void count_in();
  void tell_own_nodes();
  void forget_exchange();
  void ask_for_ranks();
  void on_ranks(const std::map<int, AssignedRanks>& ranks);
  void check_missing_later();
  void check_missing(int rank, std::vector<std::string> absent);
  void name_missing(const std::vector<std::string>& absent);

  StaticBackendOptions options;
  const std::string prefix = "/" + options.run_id + "/";
  std::map<int, OwnNode> own_nodes = {};  // by rank
  std::map<int, bool> counted = {};
  /// How many own nodes the last round had. Those that were lost since have succeeded.
  int members = 0;
  /// How many exchanges of ranks were begun or forgotten.
  int exchanges = 0;
  RunningClock::time_point deadline = {};
  bool wants_round = false;
  bool closing = false;
};

void StaticBackend::Impl::request_round() {
  wants_round = true;
  deadline = RunningClock::now() + options.join_timeout;
  ask_soon();
}

void StaticBackend::Impl::ask_soon() {
  if (!wants_round || stopped) return;
  gather(own_nodes.size(), own_nodes.size() == static_cast<std::size_t>(options.num_nodes), [this] {
    if (wants_round && !stopped) tell_own_nodes();
  });
}

void StaticBackend::Impl::on_store_lost() {
  if (on_finished) return call_finished();
  if (closing) return;
  fail(Error({.kind = ErrorKind::rendezvous,
              .what = "the connection to the store of node 0 is lost",
              .where = store.loss().where,
              .hint = "look at node 0"}));
}

// torchrun's node 0 waits until this counter is the job's number of nodes.
void StaticBackend::Impl::count_in() {
  for (const auto& [rank, node] : own_nodes) {
    if (!std::exchange(counted[rank], true)) store.add("init/", 1, [](StoreOutcome, std::int64_t) {});
  }
}

// By the connection by which remove() deletes: by another one, a node that was lost could be told to the
// store after it was deleted, and be a part of the round.
void StaticBackend::Impl::tell_own_nodes() {
  forget_exchange();
  if (own_nodes.empty()) return;
  count_in();
  Store::Pairs pairs;
  for (const auto& [rank, node] : own_nodes)
    pairs.emplace_back(prefix + role_info_key(rank), to_json({node.role, node.local_world_size}, rank));
  store.multi_set(std::move(pairs));
  // Its reply means that the store has processed what was sent before.
  store.check({}, guard([this, number = exchanges](StoreOutcome outcome, bool) {
                if (outcome == StoreOutcome::done && number == exchanges) ask_for_ranks();
              }));
}

void StaticBackend::Impl::forget_exchange() {
  ++exchanges;
  exchange.reset();
}

void StaticBackend::Impl::ask_for_ranks() {
  const auto remaining = std::chrono::ceil<std::chrono::milliseconds>(deadline - RunningClock::now());
  RankExchange::Options exchange_options = {.prefix = prefix,
                                            .group_size = options.num_nodes,
                                            .are_known = true,
                                            .timeout = std::max(remaining, std::chrono::milliseconds(0))};
  for (const auto& [rank, node] : own_nodes)
    exchange_options.own_nodes.emplace(rank, RoleInfo{node.role, node.local_world_size});
  exchange_ranks(std::move(exchange_options), [this](const auto& ranks) { on_ranks(ranks); });
  check_missing_later();
}

void StaticBackend::Impl::on_ranks(const std::map<int, AssignedRanks>& ranks) {
  timer.cancel();
  wants_round = false;
  members = static_cast<int>(ranks.size());
  Rounds rounds;
  for (const auto& [rank, node_ranks] : ranks) {
    Round round = round_of(rank, options.num_nodes, node_ranks);
    round.master_addr = options.master.host;
    round.master_port = options.master.port;
    rounds.emplace_back(own_nodes.at(rank), round);
  }
  notify(events.on_round, rounds);
}

void StaticBackend::Impl::check_missing_later() {
  timer.expires_after(options.poll_interval);
  timer.async_wait(guard([this](const auto& error) {
    if (!error && exchange) check_missing(0, {});
  }));
}

void StaticBackend::Impl::check_missing(int rank, std::vector<std::string> absent) {
  if (rank == options.num_nodes || absent.size() > kMaxNamed) return name_missing(absent);
  store.check({prefix + role_info_key(rank)},
              guard([this, rank, absent = std::move(absent)](StoreOutcome outcome, bool is_present) {
                if (outcome != StoreOutcome::done || !exchange) return;
                std::vector<std::string> absent_ranks = absent;
                if (!is_present) absent_ranks.push_back(std::to_string(rank));
                check_missing(rank + 1, std::move(absent_ranks));
              }));
}

void StaticBackend::Impl::name_missing(const std::vector<std::string>& absent) {
  check_missing_later();
  const bool has_more = absent.size() > kMaxNamed;
  const std::vector<std::string> names(
      absent.begin(), absent.begin() + static_cast<std::ptrdiff_t>(std::min(absent.size(), kMaxNamed)));
  if (absent.empty()) {
    missing("waiting for node 0 to give ranks");
  } else {
    missing("waiting for node " + join(names, ", ") + (has_more ? " and others" : ""));
  }
}

StaticBackend::StaticBackend(net::io_context& loop, Store& store, StaticBackendOptions options, Events events)
    : impl_(std::make_unique<Impl>(loop, store, std::move(options), std::move(events))) {}

StaticBackend::~StaticBackend() = default;

void StaticBackend::add(const OwnNode& node) {
  impl_->own_nodes.insert_or_assign(node.node_rank, node);
  impl_->ask_soon();
}

// Deletes its role info, too: otherwise the next round would include it. A node that has connected anew may
// have the rank since.
void StaticBackend::remove(const OwnNode& node) {
  const auto holder = impl_->own_nodes.find(node.node_rank);
  if (holder == impl_->own_nodes.end() || holder->second.local_id != node.local_id) return;
  impl_->forget_exchange();
  impl_->own_nodes.erase(holder);
  impl_->store.delete_key(impl_->prefix + role_info_key(node.node_rank), [](StoreOutcome, bool) {});
  impl_->ask_soon();
}

void StaticBackend::next_round() {
  impl_->request_round();
}

// No key of this store tells others that the job is over.
void StaticBackend::close() {
  Impl& impl = *impl_;
  impl.closing = true;
  net::post(impl.loop, impl.guard([&impl] { notify(impl.events.on_closed); }));
}

void StaticBackend::finish(std::function<void()> on_done) {
  Impl& impl = *impl_;
  impl.finish(std::move(on_done), impl.members == 0 || impl.members == impl.options.num_nodes,
              {.prefix = impl.prefix, .group_size = impl.options.num_nodes, .nodes = impl.members});
}

}  // namespace acc::launcher
