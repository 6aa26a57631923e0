// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/static_board.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <optional>
#include <utility>

#include "acc/base/text.hpp"
#include "acc/rendezvous/exit_barrier.hpp"
#include "acc/rendezvous/rank_exchange.hpp"
#include "acc/store/client.hpp"

namespace acc {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr std::size_t kMostNamed = 8;

}  // namespace

struct StaticBoard::Impl {
  Impl(asio::io_context& the_loop, StaticBoardOptions the_options, Events the_events)
      : loop(the_loop),
        options(std::move(the_options)),
        events(std::move(the_events)),
        prefix("/" + options.run_id + "/"),
        client(loop),
        timer(loop) {}

  void connect();
  void count_in();
  void exchange_ranks();
  void ranked(const std::optional<Error>& error, const std::map<int, AssignedRanks>& ranks);
  void look_later();
  void look(int from, std::vector<std::string> missing);
  void tell(const std::vector<std::string>& missing);
  void missing(const std::string& text);
  void fail(const Error& error);
  void finished(bool all);

  asio::io_context& loop;
  StaticBoardOptions options;
  Events events;
  std::string prefix;
  StoreClient client;
  asio::steady_timer timer;
  std::map<int, OwnNode> own = {};  // by rank
  std::map<int, bool> counted = {};
  steady_clock::time_point deadline = {};
  bool connected = false;
  bool wanted = false;
  bool failed = false;
  std::string said = {};
  std::optional<RankExchange> exchange = {};
  std::optional<ExitBarrier> barrier = {};
  std::function<void(bool)> finishing = {};
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

void StaticBoard::Impl::connect() {
  const std::string store = to_string(options.store);
  client.on_closed([this] {
    if (finishing) return finished(false);
    fail(Error({.kind = ErrorKind::rendezvous,
                .what = "the connection to the store of node 0 is lost",
                .where = to_string(options.store),
                .hint = "look at node 0"}));
  });
  client.connect(
      options.store, steady_clock::now() + options.join_timeout,
      [this, store](const std::string& why) { missing("waiting for node 0 at " + store + ": " + why); },
      [this](const std::optional<Error>& error) {
        if (error) return fail(*error);
        connected = true;
        if (wanted) exchange_ranks();
      });
}

// torchrun's node 0 goes on when as many have come as the job has nodes.
void StaticBoard::Impl::count_in() {
  for (const auto& [rank, node] : own) {
    if (!std::exchange(counted[rank], true)) client.add("init/", 1, [](StoreOutcome, std::int64_t) {});
  }
}

void StaticBoard::Impl::exchange_ranks() {
  exchange.reset();
  if (own.empty()) return;
  count_in();
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
  RankExchange::Options ask = {.store = options.store,
                               .prefix = prefix,
                               .group_size = options.num_nodes,
                               .timeout = std::max(left, std::chrono::milliseconds(0))};
  for (const auto& [rank, node] : own) ask.own.emplace(rank, RoleInfo{node.role, node.local_world_size});
  exchange.emplace(loop, std::move(ask),
                   [this](const auto& error, const auto& ranks) { ranked(error, ranks); });
  look_later();
}

void StaticBoard::Impl::ranked(const std::optional<Error>& error, const std::map<int, AssignedRanks>& ranks) {
  if (error) return fail(*error);
  exchange.reset();
  timer.cancel();
  wanted = false;
  Rounds rounds;
  for (const auto& [rank, its] : ranks) {
    rounds.emplace_back(own.at(rank), Round{.machine_rank = rank,
                                            .num_machines = options.num_nodes,
                                            .first_rank = its.first_rank,
                                            .world_size = its.world_size,
                                            .first_role_rank = its.first_role_rank,
                                            .role_world_size = its.role_world_size,
                                            .master_addr = options.store.host,
                                            .master_port = options.store.port});
  }
  if (events.on_round) events.on_round(std::move(rounds));
}

void StaticBoard::Impl::look_later() {
  timer.expires_after(options.look);
  timer.async_wait([this, watch = std::weak_ptr(alive)](const auto& error) {
    if (!error && !watch.expired() && exchange) look(0, {});
  });
}

void StaticBoard::Impl::look(int from, std::vector<std::string> absent) {
  if (from == options.num_nodes || absent.size() > kMostNamed) return tell(absent);
  client.check({prefix + "torchelastic/role_info/" + std::to_string(from)},
               [this, from, absent = std::move(absent)](StoreOutcome outcome, bool here) mutable {
                 if (outcome != StoreOutcome::done || !exchange) return;
                 if (!here) absent.push_back(std::to_string(from));
                 look(from + 1, std::move(absent));
               });
}

void StaticBoard::Impl::tell(const std::vector<std::string>& absent) {
  const bool more = absent.size() > kMostNamed;
  const std::vector<std::string> named(
      absent.begin(), absent.begin() + static_cast<std::ptrdiff_t>(std::min(absent.size(), kMostNamed)));
  if (absent.empty()) {
    missing("waiting for node 0 to give ranks");
  } else {
    missing("waiting for node " + join(named, ", ") + (more ? " and others" : ""));
  }
  look_later();
}

void StaticBoard::Impl::missing(const std::string& text) {
  if (text == said) return;
  said = text;
  if (events.on_missing) events.on_missing(text);
}

void StaticBoard::Impl::fail(const Error& error) {
  if (std::exchange(failed, true)) return;
  exchange.reset();
  timer.cancel();
  if (events.on_error) events.on_error(error);
}

void StaticBoard::Impl::finished(bool all) {
  barrier.reset();
  const auto done = std::exchange(finishing, {});
  if (done) done(all);
}

StaticBoard::StaticBoard(asio::io_context& loop, StaticBoardOptions options, Events events)
    : impl_(std::make_unique<Impl>(loop, std::move(options), std::move(events))) {
  impl_->connect();
}

StaticBoard::~StaticBoard() = default;

void StaticBoard::add(OwnNode node) {
  const int rank = node.node_rank;
  impl_->own.insert_or_assign(rank, std::move(node));
  if (impl_->wanted && impl_->connected) impl_->exchange_ranks();
}

void StaticBoard::remove(const OwnNode& node) {
  impl_->own.erase(node.node_rank);
  if (impl_->wanted && impl_->connected) impl_->exchange_ranks();
}

void StaticBoard::next_round() {
  if (impl_->failed) return;
  impl_->wanted = true;
  impl_->deadline = steady_clock::now() + impl_->options.join_timeout;
  if (impl_->connected) impl_->exchange_ranks();
}

void StaticBoard::finish(std::function<void(bool)> done) {
  impl_->finishing = std::move(done);
  if (impl_->failed || !impl_->connected || impl_->own.empty()) {
    asio::post(impl_->loop, [impl = impl_.get(), watch = std::weak_ptr(impl_->alive)] {
      if (!watch.expired()) impl->finished(false);
    });
    return;
  }
  impl_->barrier.emplace(impl_->loop,
                         ExitBarrier::Options{.store = impl_->options.store,
                                              .prefix = impl_->prefix,
                                              .group_size = impl_->options.num_nodes,
                                              .own = static_cast<int>(impl_->own.size())},
                         [impl = impl_.get()](bool all) { impl->finished(all); });
}

// Nothing on this board says that a job is over.
void StaticBoard::close(std::function<void()> done) {
  asio::post(impl_->loop, [done = std::move(done), watch = std::weak_ptr(impl_->alive)] {
    if (!watch.expired() && done) done();
  });
}

}  // namespace acc
