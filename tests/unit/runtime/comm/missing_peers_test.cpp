// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/missing_peers.hpp"

#include <algorithm>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "support/catch.hpp"

namespace missing_peers_test {

namespace {

acc::WorkerEnv worker(int rank, int world_size) {
  return {.rank = rank, .world_size = world_size, .master_addr = "node0", .master_port = 29500};
}

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
  acc::WorkerEnv with_agent_store = worker(0, 2);
  with_agent_store.use_agent_store = true;
  CHECK(acc::detail::join_notice(with_agent_store, seconds(10), std::nullopt) ==
        "acc: rank 0 of 2 has waited 10 s for the launcher's store, which does not answer (the store is at "
        "node0:29500)\n");
  CHECK(acc::detail::join_notice(worker(0, 100), seconds(10), std::vector<int>{0}) ==
        "acc: rank 0 of 100 has waited 10 s for ranks 1-99 (the store is at node0:29500)\n");
}

TEST_CASE("comparison: the others are elsewhere when one that could have gone past it has", "[runtime]") {
  using acc::detail::others_are_elsewhere;
  const acc::detail::PeerPosition own{.calls = 5, .place = "in comparison of parameters, since x was frozen"};
  const acc::detail::PeerPosition same{.calls = 5, .place = "in comparison of parameters, since y changed"};
  CHECK_FALSE(others_are_elsewhere(own, {{0, own}, {1, same}}, 2));
  CHECK(others_are_elsewhere(own, {{0, own}, {1, {.calls = 5, .place = "in backward"}}}, 2));
  CHECK_FALSE(others_are_elsewhere(own, {{0, own}, {1, {.calls = 4, .place = "in forward"}}}, 2));
  // Rank 2 does not answer: it may be suspended, with a part of the comparison that rank 1 has got already.
  CHECK_FALSE(others_are_elsewhere(own, {{0, own}, {1, {.calls = 6, .place = "in backward"}}}, 3));
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

TEST_CASE("join_watch: only the lowest rank that has joined writes", "[runtime]") {
  CHECK(acc::detail::join_notice(worker(2, 4), seconds(10), std::vector<int>{0, 2}).empty());
  CHECK_FALSE(acc::detail::join_notice(worker(1, 4), seconds(10), std::vector<int>{1, 2}).empty());
  CHECK(acc::detail::join_notice(worker(0, 2), seconds(10), std::vector<int>{0, 1}).empty());
}

TEST_CASE("join_watch: who does not write asks no more than who does", "[runtime]") {
  acc::WorkerEnv last = worker(3999, 4000);
  last.use_agent_store = true;
  int questions = 0;
  const auto joined = acc::detail::joined_ranks(last, [&](int rank) {
    ++questions;
    return rank >= 2;
  });
  CHECK(questions == 3);
  CHECK(acc::detail::join_notice(last, seconds(10), joined).empty());
  CHECK(acc::detail::joined_ranks(worker(1, 4), [](int) -> bool { throw 0; }) == std::vector<int>{0});
  CHECK(acc::detail::joined_ranks(worker(0, 4), [](int rank) { return rank == 2; }) ==
        std::vector<int>{0, 2});
}

}  // namespace missing_peers_test
