// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/preflight/judgement.hpp"
#include "acc/preflight/peer_list.hpp"
#include "acc/preflight/peer_probe.hpp"
#include "acc/preflight/report.hpp"
#include "acc/preflight/schedule.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using Keys = std::vector<std::string>;
using Texts = std::vector<std::string>;
using std::chrono::milliseconds;

// Connections that a node opens at the same time.
constexpr int kParallel = 64;
// With more nodes, what they report of each other would grow with the square of their number.
constexpr int kAllReported = 64;

/// The keys of the round.
class KeyNames {
 public:
  explicit KeyNames(int attempt) : prefix_(fmt::format("/acc/preflight/{}/", attempt)) {}

  // From each node.
  std::string health(int rank) const { return of("health", rank); }
  std::string connections(int rank) const { return of("connections", rank); }
  std::string transfers(int rank) const { return of("transfers", rank); }
  std::string repeats(int rank) const { return of("repeats", rank); }
  std::string read(int rank) const { return of("read", rank); }
  // From rank 0.
  std::string peers() const { return prefix_ + "peers"; }
  std::string blocked() const { return prefix_ + "blocked"; }
  std::string slow() const { return prefix_ + "slow"; }
  std::string findings() const { return prefix_ + "findings"; }

 private:
  std::string of(const char* what, int rank) const { return fmt::format("{}{}/{}", prefix_, what, rank); }
  std::string prefix_;
};

// Completes a coroutine by a handler that the store can copy.
template <typename Value, typename Start>
asio::awaitable<Value> completion(Start start) {
  auto initiate = [start = std::move(start)](auto handler) mutable {
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    start([shared](Value value) {
      // The coroutine goes on inside this call, in which the store may destroy its copy of the handler.
      auto own = std::move(*shared);
      std::move(own)(std::move(value));
    });
  };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(Value)>(std::move(initiate),
                                                                                       asio::use_awaitable);
}

/// The values, or absent when not all keys come in time or the store is lost.
asio::awaitable<std::optional<Texts>> present(Store& store, Keys keys, milliseconds limit) {
  auto start = [&store, keys = std::move(keys), limit](auto done) {
    store.get_when_present(keys, limit, [done](StoreOutcome outcome, Texts values) {
      done(outcome == StoreOutcome::done ? std::optional(std::move(values)) : std::nullopt);
    });
  };
  co_return co_await completion<std::optional<Texts>>(std::move(start));
}

asio::awaitable<std::optional<std::string>> value_now(Store& store, std::string key) {
  auto start = [&store, key = std::move(key)](auto done) {
    store.get(key, [done](StoreOutcome, std::optional<std::string> value) { done(std::move(value)); });
  };
  co_return co_await completion<std::optional<std::string>>(std::move(start));
}

asio::awaitable<bool> removed(Store& store, std::string key) {
  auto start = [&store, key = std::move(key)](auto done) {
    store.delete_key(key, [done](StoreOutcome, bool was) { done(was); });
  };
  co_return co_await completion<bool>(std::move(start));
}

// What a node has published; absent if it has not, or is of another version of acc.
template <typename Decode>
auto readable(const std::optional<std::string>& value, const Decode& decode)
    -> std::optional<decltype(decode(*value))> {
  if (!value) return std::nullopt;
  try {
    return decode(*value);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// For rank 0.
NodeCheckResult full_result(const Observations& observations, const std::vector<Finding>& findings) {
  NodeCheckResult result{.passed = !has_errors(findings), .clean = findings.empty()};
  if (!result.passed) result.summary = refusal_text(findings, observations.num_nodes);
  result.text = preflight_text(observations, findings);
  result.json = preflight_json(observations, findings);
  return result;
}

/// What one node does in the exchange.
class Exchange {
 public:
  Exchange(asio::io_context& loop, Store& store, const NodeCheckJob& job, NodeHealth health,
           ExchangeLimits limits, Clock::time_point began)
      : loop_(loop),
        store_(store),
        job_(job),
        health_(std::move(health)),
        limits_(limits),
        began_(began),
        names_(job.attempt),
        probe_(loop, job.round.machine_rank) {}

  static asio::awaitable<NodeCheckResult> run(std::unique_ptr<Exchange> exchange) {
    co_return co_await exchange->run();
  }

 private:
  asio::awaitable<NodeCheckResult> run() {
    health_.port = probe_.port();
    store_.set(names_.health(rank()), probe_.token() + encode(health_));
    if (rank() == 0) co_await collect_health();
    const auto text = co_await of_first(names_.peers(), limits_.self);
    if (!text) co_return lost("who takes part");
    peers_ = decode_peers(*text, num_nodes());
    const bool takes_part = std::ranges::find(peers_, rank(), &PeerAddress::rank) != peers_.end();
    if (takes_part) co_await connect_all();
    if (rank() == 0) co_await collect_connections();
    const auto pairs = co_await of_first(names_.blocked(), connect_time());
    if (!pairs) co_return lost("who can connect to whom");
    const Schedule schedule = make_schedule(num_nodes(), decode_pairs(*pairs, num_nodes()));
    if (takes_part) {
      const std::vector<Transfer> transfers = co_await measure(schedule, 0);
      store_.set(names_.transfers(rank()), launcher::encode(transfers));
    }
    if (rank() == 0) co_await collect_transfers();
    const auto slow = co_await of_first(names_.slow(), limits_.measuring);
    if (!slow) co_return lost("which transfers were slow");
    co_await repeat(schedule, decode_pairs(*slow, num_nodes()));
    const auto verdict = co_await of_first(names_.findings(), limits_.measuring);
    if (!verdict) co_return lost("what was found");
    store_.set(names_.read(rank()), "");
    const std::vector<Finding> findings = decode_findings(*verdict);
    if (rank() == 0) {
      co_await present(store_, keys_of_readers(), has_errors(findings) ? limits_.refusal : limits_.step);
      co_await remove_keys();
    }
    co_return result_of(findings);
  }

  int rank() const { return job_.round.machine_rank; }
  int num_nodes() const { return job_.round.num_machines; }
  milliseconds connect_time() const {
    const ProbeLimits limits;
    return limits.answer + limits.connect * (1 + num_nodes() / kParallel);
  }
  // Waits for what rank 0 publishes after it has waited itself.
  asio::awaitable<std::optional<std::string>> of_first(std::string key, milliseconds work) {
    const Keys keys(1, key);
    const auto values = co_await present(store_, keys, work + 2 * limits_.step);
    co_return values ? std::optional(values->front()) : std::nullopt;
  }

  NodeCheckResult lost(const char* what) const {
    const std::string summary =
        fmt::format("the preflight failed: {} was not told {} by rank 0 in time", health_.host, what);
    return {.passed = false, .clean = false, .summary = summary};
  }

  std::vector<int> all_nodes() const {
    std::vector<int> ranks(static_cast<std::size_t>(num_nodes()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  // Those that published what they found out about themselves: nobody waits for the others any more.
  std::vector<int> nodes_that_take_part() const {
    std::vector<int> ranks;
    for (const PeerAddress& peer : peers_) ranks.push_back(peer.rank);
    return ranks;
  }

  // The values of those nodes that publish theirs in time, in the order of `ranks`.
  asio::awaitable<std::vector<std::optional<std::string>>> of_nodes(std::vector<int> ranks,
                                                                    std::string (KeyNames::*key)(int) const,
                                                                    milliseconds work) {
    Keys keys;
    for (const int node_rank : ranks) keys.push_back((names_.*key)(node_rank));
    std::vector<std::optional<std::string>> values;
    if (auto all = co_await present(store_, keys, work + limits_.step)) {
      values.assign(all->begin(), all->end());
    } else {
      for (const std::string& name : keys) values.push_back(co_await value_now(store_, name));
    }
    co_return values;
  }

  asio::awaitable<void> collect_health() {
    const auto values = co_await of_nodes(all_nodes(), &KeyNames::health, limits_.self);
    observations_.num_nodes = num_nodes();
    std::vector<PeerAddress> peers;
    for (int node_rank = 0; node_rank < num_nodes(); ++node_rank) {
      const auto& value = values.at(static_cast<std::size_t>(node_rank));
      const auto node =
          readable(value, [](const std::string& text) { return decode_health(text.substr(kTokenSize)); });
      if (!node || node->rank != node_rank || !is_token(value->substr(0, kTokenSize))) continue;
      observations_.nodes.push_back(*node);
      peers.push_back({node_rank, node->address, node->port, value->substr(0, kTokenSize)});
    }
    store_.set(names_.peers(), launcher::encode(peers));
  }

  asio::awaitable<void> connect_all() {
    // Beginning with the next rank, so that not all nodes connect to the same one at once.
    std::vector<PeerAddress> peers;
    for (const PeerAddress& peer : peers_)
      if (peer.rank != rank()) peers.push_back(reachable(peer));
    std::ranges::stable_sort(
        peers, {}, [&](const PeerAddress& peer) { return (peer.rank - rank() + num_nodes()) % num_nodes(); });
    std::vector<ConnectionCheck> connections;
    asio::steady_timer all_done(loop_, Clock::time_point::max());
    std::size_t next = 0;
    int running = std::min(kParallel, static_cast<int>(peers.size()));
    const auto connect_some = [&]() -> asio::awaitable<void> {
      while (next < peers.size()) {
        const PeerAddress& peer = peers[next++];
        connections.push_back(co_await probe_.connect(peer));
      }
      if (--running == 0) all_done.cancel();
    };
    for (int count = running; count > 0; --count) asio::co_spawn(loop_, connect_some(), asio::detached);
    boost::system::error_code ignored;
    while (running > 0) co_await all_done.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (num_nodes() > kAllReported) keep_what_matters(connections);
    store_.set(names_.connections(rank()), launcher::encode(connections));
  }

  // Of connections that work, one is enough: it compares the clocks.
  void keep_what_matters(std::vector<ConnectionCheck>& connections) const {
    const int kept = rank() == peers_.front().rank ? peers_.back().rank : peers_.front().rank;
    std::erase_if(connections,
                  [&](const ConnectionCheck& one) { return one.error.empty() && one.to != kept; });
  }

  // Rank 0 may know itself by a loopback address only: the others use the one that its name has for them.
  PeerAddress reachable(PeerAddress peer) const {
    const auto& meeting = health_.meeting.lookup.addresses;
    if (peer.rank == 0 && is_loopback(peer.address) && !meeting.empty()) peer.address = meeting.front();
    return peer;
  }

  // Adds the reports of the nodes that take part to `reports`, and those that do not report to the silent
  // ones.
  template <typename Report>
  void add_reports(const std::vector<std::optional<std::string>>& values,
                   std::vector<Report> (*decode)(std::string_view), std::vector<Report>& reports) {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      auto reported = readable(values.at(i), decode);
      if (reported)
        std::ranges::move(*reported, std::back_inserter(reports));
      else if (std::ranges::find(observations_.silent, peers_[i].rank) == observations_.silent.end())
        observations_.silent.push_back(peers_[i].rank);
    }
  }

  asio::awaitable<void> collect_connections() {
    add_reports(co_await of_nodes(nodes_that_take_part(), &KeyNames::connections, connect_time()),
                decode_connections, observations_.connections);
    store_.set(names_.blocked(), launcher::encode(blocked_pairs(observations_.connections, num_nodes())));
  }

  /// Measures with the partner of each turn. Turns have numbers of their own, from `first` on.
  asio::awaitable<std::vector<Transfer>> measure(Schedule schedule, std::size_t first) {
    std::vector<Transfer> transfers;
    for (std::size_t turn = 0; turn < schedule.turns.size(); ++turn) {
      const auto partner = schedule.turns[turn].at(static_cast<std::size_t>(rank()));
      if (!partner) continue;
      const auto peer = std::ranges::find(peers_, *partner, &PeerAddress::rank);
      if (peer == peers_.end()) continue;
      const auto number = static_cast<int>(first + turn);
      transfers.push_back(co_await probe_.measure(reachable(*peer), number, schedule.time));
    }
    probe_.end_turns();
    co_return transfers;
  }

  asio::awaitable<void> collect_transfers() {
    add_reports(co_await of_nodes(nodes_that_take_part(), &KeyNames::transfers, limits_.measuring),
                decode_transfers, observations_.transfers);
    store_.set(names_.slow(), launcher::encode(slow_pairs(observations_)));
  }

  // A node that stands still for a moment, for lack of a processor, makes a transfer slow, too: what was slow
  // is measured again, and the better of both counts.
  asio::awaitable<void> repeat(Schedule schedule, RankPairs slow) {
    const std::size_t first = schedule.turns.size();
    keep_pairs(schedule, slow);
    const std::vector<int> ranks = ranks_of(slow);
    if (std::ranges::count(ranks, rank()) > 0) {
      const std::vector<Transfer> repeats = co_await measure(std::move(schedule), first);
      store_.set(names_.repeats(rank()), launcher::encode(repeats));
    }
    if (rank() == 0) co_await collect_repeats(ranks);
  }

  asio::awaitable<void> collect_repeats(std::vector<int> ranks) {
    std::vector<std::optional<std::string>> values;
    if (!ranks.empty()) values = co_await of_nodes(ranks, &KeyNames::repeats, limits_.measuring);
    for (const auto& value : values)
      if (const auto repeats = readable(value, decode_transfers))
        keep_better(observations_.transfers, *repeats);
    observations_.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    store_.set(names_.findings(), launcher::encode(judge(observations_)));
  }

  // Whoever took no part or fell silent may not read what was found either.
  Keys keys_of_readers() const {
    Keys keys;
    for (const int node_rank : nodes_that_take_part())
      if (std::ranges::count(observations_.silent, node_rank) == 0) keys.push_back(names_.read(node_rank));
    return keys;
  }

  // The workers find an empty store.
  asio::awaitable<void> remove_keys() {
    for (int node_rank = 0; node_rank < num_nodes(); ++node_rank) {
      co_await removed(store_, names_.health(node_rank));
      co_await removed(store_, names_.connections(node_rank));
      co_await removed(store_, names_.transfers(node_rank));
      co_await removed(store_, names_.repeats(node_rank));
      co_await removed(store_, names_.read(node_rank));
    }
    co_await removed(store_, names_.peers());
    co_await removed(store_, names_.blocked());
    co_await removed(store_, names_.slow());
    co_await removed(store_, names_.findings());
  }

  NodeCheckResult result_of(const std::vector<Finding>& findings) const {
    if (rank() == 0) return full_result(observations_, findings);
    NodeCheckResult result{.passed = !has_errors(findings)};
    if (!result.passed) result.summary = refusal_text(findings, num_nodes());
    // Of errors every node hears when the job ends.
    std::vector<Finding> relevant;
    std::ranges::copy_if(findings, std::back_inserter(relevant), [&](const Finding& finding) {
      return result.passed && std::ranges::find(finding.nodes, rank()) != finding.nodes.end();
    });
    result.clean = relevant.empty();
    result.text = findings_text(relevant);
    return result;
  }

  asio::io_context& loop_;
  Store& store_;
  const NodeCheckJob& job_;
  NodeHealth health_;
  ExchangeLimits limits_;
  Clock::time_point began_;
  KeyNames names_;
  PeerProbe probe_;
  std::vector<PeerAddress> peers_ = {};
  /// On rank 0.
  Observations observations_ = {};
};

}  // namespace

NodeCheckResult check_alone(NodeHealth health, std::chrono::duration<double> took) {
  Observations seen{.seconds = took.count()};
  health.rank = 0;
  seen.nodes.push_back(std::move(health));
  return full_result(seen, judge(seen));
}

asio::awaitable<NodeCheckResult> check_together(asio::io_context& loop, Store& store, const NodeCheckJob& job,
                                                NodeHealth health, ExchangeLimits limits,
                                                Clock::time_point began) {
  return Exchange::run(std::make_unique<Exchange>(loop, store, job, std::move(health), limits, began));
}

}  // namespace acc::launcher
