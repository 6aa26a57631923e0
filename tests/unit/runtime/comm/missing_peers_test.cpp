// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/missing_peers.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "support/catch.hpp"

namespace missing_peers_test {

namespace {

acc::WorkerEnv worker(int rank, int world_size) {
  return {.rank = rank, .world_size = world_size, .master_addr = "node0", .master_port = 29500};
}

acc::WorkerEnv agents_store(acc::WorkerEnv worker) {
  worker.use_agent_store = true;
  return worker;
}

// Counts what it is asked.
struct CountingStore : c10d::HashStore {
  using Store::set;
  bool check(const std::vector<std::string>& keys) override {
    ++checks;
    return HashStore::check(keys);
  }
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override {
    ++gets;
    return HashStore::multiGet(keys);
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    ++gets;
    return HashStore::get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    if (has_timed_out) throw std::runtime_error("wait timeout");
    HashStore::wait(keys, timeout);
  }

  std::atomic<int> checks = 0;
  std::atomic<int> gets = 0;
  bool has_timed_out = false;
};

// A comparison that is over after `waits` waits of which each expires.
struct FakeComparison : c10d::Work {
  explicit FakeComparison(int expiring) : waits(expiring) {}
  bool wait(std::chrono::milliseconds timeout) override {
    longest = std::max(longest, timeout);
    waited += timeout;
    if (waits-- > 0) throw std::runtime_error("Operation timed out!");
    return true;
  }
  bool isCompleted() override { return waits < 0; }

  int waits = 0;
  std::chrono::milliseconds waited{0};
  std::chrono::milliseconds longest{0};
};

}  // namespace

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("join_watch: it names the ranks that have not joined, or the store that does not answer",
          "[runtime]") {
  CHECK(acc::detail::join_notice(worker(0, 2), seconds(10), std::vector<int>{0}) ==
        "acc: rank 0 of 2 has waited 10 s for rank 1 (the store is at node0:29500)\n");
  CHECK(acc::detail::join_notice(worker(0, 4), seconds(20), std::vector<int>{0, 2}) ==
        "acc: rank 0 of 4 has waited 20 s for ranks 1, 3 (the store is at node0:29500)\n");
  CHECK(acc::detail::join_notice(worker(1, 2), seconds(10), std::nullopt) ==
        "acc: rank 1 of 2 has waited 10 s for rank 0, whose store does not answer (the store is at "
        "node0:29500)\n");
  CHECK(acc::detail::join_notice(agents_store(worker(0, 2)), seconds(10), std::nullopt) ==
        "acc: rank 0 of 2 has waited 10 s for the launcher's store, which does not answer (the store is at "
        "node0:29500)\n");
  CHECK(acc::detail::join_notice(worker(0, 100), seconds(10), std::vector<int>{0}) ==
        "acc: rank 0 of 100 has waited 10 s for ranks 1-99 (the store is at node0:29500)\n");
}

TEST_CASE("comparison: the others are elsewhere when one that could have gone past it has", "[runtime]") {
  using acc::detail::others_are_elsewhere;
  const acc::detail::PeerPosition position{.calls = 5,
                                           .phase = "in comparison of parameters, since x was frozen"};
  const acc::detail::PeerPosition same{.calls = 5, .phase = "in comparison of parameters, since y changed"};
  CHECK_FALSE(others_are_elsewhere(position, {{0, position}, {1, same}}, 2));
  CHECK(others_are_elsewhere(position, {{0, position}, {1, {.calls = 5, .phase = "in backward"}}}, 2));
  CHECK_FALSE(others_are_elsewhere(position, {{0, position}, {1, {.calls = 4, .phase = "in forward"}}}, 2));
  // Rank 2 does not answer: it may be suspended, with a part of the comparison that rank 1 has got already.
  CHECK_FALSE(others_are_elsewhere(position, {{0, position}, {1, {.calls = 6, .phase = "in backward"}}}, 3));
}

TEST_CASE("comparison: others elsewhere are believed only when it still is not over afterwards",
          "[runtime]") {
  FakeComparison late(17);
  acc::detail::wait_or_find_others_elsewhere(late, [] { return true; });
  CHECK(late.waited > seconds(3));
  FakeComparison never(1000);
  CHECK_THROWS_AS(acc::detail::wait_or_find_others_elsewhere(never, [] { return true; }),
                  acc::detail::DifferentCalls);
  CHECK(never.waited == seconds(4));
}

TEST_CASE("comparison: a process that is suspended while it waits loses no more than a short wait",
          "[runtime]") {
  FakeComparison comparison(40);
  int asked = 0;
  acc::detail::wait_or_find_others_elsewhere(comparison, [&] { return ++asked < 0; });
  CHECK(asked == 1);
  CHECK(comparison.longest <= milliseconds(200));
}

TEST_CASE("join_watch: one process writes for all, and the others ask the store one question", "[runtime]") {
  CountingStore store;
  for (const int rank : {2, 3}) store.set(acc::detail::joined_key(rank), "1");
  acc::detail::JoinNotices two(agents_store(worker(2, 4)));
  acc::detail::JoinNotices three(agents_store(worker(3, 4)));
  CHECK(three.next(store, seconds(10)) ==
        "acc: rank 3 of 4 has waited 10 s for ranks 0, 1 (the store is at node0:29500)\n");
  store.checks = 0;
  CHECK(two.next(store, seconds(10)).empty());
  CHECK(two.next(store, seconds(20)).empty());
  CHECK(store.checks == 0);
  CHECK(three.next(store, seconds(20)) ==
        "acc: rank 3 of 4 has waited 20 s for ranks 0, 1 (the store is at node0:29500)\n");
  for (const int rank : {0, 1}) store.set(acc::detail::joined_key(rank), "1");
  CHECK(three.next(store, seconds(30)).empty());
}

TEST_CASE("join_watch: rank 0 has joined where it serves the store", "[runtime]") {
  CountingStore store;
  acc::detail::JoinNotices one(worker(1, 3));
  CHECK(one.next(store, seconds(10)) ==
        "acc: rank 1 of 3 has waited 10 s for rank 2 (the store is at node0:29500)\n");
}

TEST_CASE("peer_check: what all have answered is one question to the store", "[runtime]") {
  constexpr int kSize = 1000;
  const auto store = c10::make_intrusive<CountingStore>();
  for (int rank = 1; rank < kSize; ++rank)
    store->set("acc/peer_check/" + std::to_string(rank), rank == 7 ? "ended" : "4 in backward");
  acc::detail::PeerCheck check(store, 0, kSize, [] { return 5; });
  const acc::detail::PeerReport report = check.report().value();
  CHECK(report.absent == std::vector<int>{7});
  CHECK(report.late.size() == kSize - 2);
  CHECK(report.late.front().phase == "in backward");
  CHECK(store->gets == 1);
  CHECK(store->checks < 10);  // the thread's own
}

TEST_CASE("peer_check: a rank that does not answer in time is absent", "[runtime]") {
  const auto store = c10::make_intrusive<CountingStore>();
  store->has_timed_out = true;
  store->set("acc/peer_check/2", "5 in backward");
  acc::detail::PeerCheck check(store, 0, 3, [] { return 5; });
  const acc::detail::PeerReport report = check.report().value();
  CHECK(report.absent == std::vector<int>{1});
  CHECK(report.phases.at(2) == "in backward");
}

}  // namespace missing_peers_test
