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

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr std::size_t kMostNamed = 8;

}  // namespace

struct StaticBoard::Impl {
  Impl(asio::io_context& the_loop, Store& the_store, StaticBoardOptions the_options, Events the_events)
      : loop(the_loop),
        store(the_store),
        options(std::move(the_options)),
        events(std::move(the_events)),
        timer(loop) {
    store.on_closed([this] { lose(); });
    begin();
  }
  ~Impl() { store.on_closed({}); }

  // The store may outlive this: what it calls back asks first.
  template <typename Handler>
  auto unless_gone(Handler handler) const {
    return [watch = std::weak_ptr(alive), handler = std::move(handler)](auto&&... values) {
      if (!watch.expired()) handler(std::forward<decltype(values)>(values)...);
    };
  }

  void begin();
  void wake();
  void lose();
  void count_in();
  void exchange_ranks();
  void ranked(const std::optional<Error>& error, const std::map<int, AssignedRanks>& ranks);
  void look_later();
  void look(int from, std::vector<std::string> missing);
  void tell_missing(const std::vector<std::string>& absent);
  void missing(const std::string& text);
  void fail(const Error& error);
  void finished();

  asio::io_context& loop;
  Store& store;
  StaticBoardOptions options;
  Events events;
  asio::steady_timer timer;
  const std::string prefix = "/" + options.run_id + "/";
  std::map<int, OwnNode> own = {};  // by rank
  std::map<int, bool> counted = {};
  steady_clock::time_point deadline = {};
  bool wanted = false;
  bool woken = false;
  bool failed = false;
  bool closing = false;
  std::string said = {};
  std::optional<RankExchange> exchange = {};
  std::optional<ExitBarrier> barrier = {};
  std::function<void()> finishing = {};
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

void StaticBoard::Impl::begin() {
  wanted = true;
  deadline = steady_clock::now() + options.join_timeout;
  wake();
}

// Nodes that are added one after the other go together.
void StaticBoard::Impl::wake() {
  if (!wanted || failed || std::exchange(woken, true)) return;
  asio::post(loop, unless_gone([this] {
               woken = false;
               if (wanted) exchange_ranks();
             }));
}

void StaticBoard::Impl::lose() {
  if (finishing) return finished();
  if (closing) return;
  fail(Error({.kind = ErrorKind::rendezvous,
              .what = "the connection to the store of node 0 is lost",
              .where = store.loss().where,
              .hint = "look at node 0"}));
}

// torchrun's node 0 goes on when as many have come as the job has nodes.
void StaticBoard::Impl::count_in() {
  for (const auto& [rank, node] : own) {
    if (!std::exchange(counted[rank], true)) store.add("init/", 1, [](StoreOutcome, std::int64_t) {});
  }
}

void StaticBoard::Impl::exchange_ranks() {
  exchange.reset();
  if (own.empty()) return;
  count_in();
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
  RankExchange::Options ask = {.prefix = prefix,
                               .group_size = options.num_nodes,
                               .timeout = std::max(left, std::chrono::milliseconds(0))};
  for (const auto& [rank, node] : own) ask.own.emplace(rank, RoleInfo{node.role, node.local_world_size});
  exchange.emplace(store, std::move(ask),
                   [this](const auto& error, const auto& ranks) { ranked(error, ranks); });
  look_later();
}

void StaticBoard::Impl::ranked(const std::optional<Error>& error, const std::map<int, AssignedRanks>& ranks) {
  if (error) return fail(*error);
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
                                            .master_addr = options.master.host,
                                            .master_port = options.master.port});
  }
  tell(events.on_round, rounds);
}

void StaticBoard::Impl::look_later() {
  timer.expires_after(options.look);
  timer.async_wait(unless_gone([this](const auto& error) {
    if (!error && exchange) look(0, {});
  }));
}

void StaticBoard::Impl::look(int from, std::vector<std::string> absent) {
  if (from == options.num_nodes || absent.size() > kMostNamed) return tell_missing(absent);
  store.check({prefix + "torchelastic/role_info/" + std::to_string(from)},
              unless_gone([this, from, absent = std::move(absent)](StoreOutcome outcome, bool here) {
                if (outcome != StoreOutcome::done || !exchange) return;
                std::vector<std::string> more = absent;
                if (!here) more.push_back(std::to_string(from));
                look(from + 1, std::move(more));
              }));
}

void StaticBoard::Impl::tell_missing(const std::vector<std::string>& absent) {
  look_later();
  const bool more = absent.size() > kMostNamed;
  const std::vector<std::string> named(
      absent.begin(), absent.begin() + static_cast<std::ptrdiff_t>(std::min(absent.size(), kMostNamed)));
  if (absent.empty()) {
    missing("waiting for node 0 to give ranks");
  } else {
    missing("waiting for node " + join(named, ", ") + (more ? " and others" : ""));
  }
}

void StaticBoard::Impl::missing(const std::string& text) {
  if (text == said) return;
  said = text;
  tell(events.on_missing, text);
}

void StaticBoard::Impl::fail(const Error& error) {
  if (std::exchange(failed, true)) return;
  exchange.reset();
  timer.cancel();
  tell(events.on_error, error);
}

void StaticBoard::Impl::finished() {
  barrier.reset();
  const auto done = std::exchange(finishing, {});
  if (done) done();
}

StaticBoard::StaticBoard(asio::io_context& loop, Store& store, StaticBoardOptions options, Events events)
    : impl_(std::make_unique<Impl>(loop, store, std::move(options), std::move(events))) {}

StaticBoard::~StaticBoard() = default;

void StaticBoard::add(const OwnNode& node) {
  impl_->own.insert_or_assign(node.node_rank, node);
  impl_->wake();
}

// What it has said of itself goes too: the next round would be formed with it.
void StaticBoard::remove(const OwnNode& node) {
  impl_->own.erase(node.node_rank);
  impl_->store.delete_key(impl_->prefix + "torchelastic/role_info/" + std::to_string(node.node_rank),
                          [](StoreOutcome, bool) {});
  impl_->wake();
}

void StaticBoard::next_round() {
  impl_->begin();
}

// Nothing on this board says to others that a job is over.
void StaticBoard::close() {
  Impl& impl = *impl_;
  impl.closing = true;
  asio::post(impl.loop, impl.unless_gone([&impl] { tell(impl.events.on_closed); }));
}

void StaticBoard::finish(std::function<void()> done) {
  Impl& impl = *impl_;
  const int own = static_cast<int>(impl.own.size());
  impl.finishing = std::move(done);
  if (impl.failed || own == 0 || own == impl.options.num_nodes) {
    asio::post(impl.loop, impl.unless_gone([&impl] { impl.finished(); }));
    return;
  }
  impl.barrier.emplace(
      impl.store,
      ExitBarrier::Options{.prefix = impl.prefix, .group_size = impl.options.num_nodes, .own = own},
      [&impl](bool) { impl.finished(); });
}

}  // namespace acc::launcher
