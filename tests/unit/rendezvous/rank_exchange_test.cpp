// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/rank_exchange.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "support/board_store.hpp"
#include "support/catch.hpp"

namespace {

using acc::launcher::AssignedRanks;
using acc::launcher::RankExchange;
using acc::launcher::RoleInfo;
using acc::test::BoardStore;

struct Result {
  bool done = false;
  std::string error = {};
  std::map<int, AssignedRanks> ranks = {};
};

RankExchange::Done into(Result& result) {
  return [&result](const auto& error, const auto& ranks) {
    result.done = true;
    if (error) result.error = error->what();
    result.ranks = ranks;
  };
}

}  // namespace

TEST_CASE("rank exchange: an own node 0 gives ranks when all have said what they run", "[rendezvous]") {
  BoardStore store;
  Result result;
  RankExchange exchange(store.hand,
                        {.prefix = "/p/",
                         .group_size = 3,
                         .own = {{0, {"default", 2}}, {2, {"default", 1}}},
                         .first = {{"/p/MASTER_ADDR", "here"}}},
                        into(result));
  CHECK(store.await("/p/torchelastic/role_info/2") ==
        R"({"role": "default", "rank": 2, "local_world_size": 1})");
  CHECK(store.get("/p/MASTER_ADDR") == "here");
  CHECK(store.get("/p/torchelastic/assigned_ranks/1") == "(none)");
  CHECK_FALSE(result.done);
  store.hand.set("/p/torchelastic/role_info/1", R"({"role": "other", "rank": 1, "local_world_size": 4})");
  store.until([&] { return result.done; });
  CHECK(result.error.empty());
  CHECK(result.ranks == std::map<int, AssignedRanks>{{0, {0, 7, 0, 3}}, {2, {6, 7, 2, 3}}});
  CHECK(store.await("/p/torchelastic/assigned_ranks/1") == "[2, 7, 0, 4]");
}

TEST_CASE("rank exchange: others get their ranks when the own nodes have theirs", "[rendezvous]") {
  BoardStore store;
  const bool ends = GENERATE(false, true);
  bool done = false;
  std::unique_ptr<RankExchange> exchange;
  exchange = std::make_unique<RankExchange>(store.hand, RankExchange::Options{.own = {{0, {}}}},
                                            [&](const auto&, const auto&) {
                                              if (ends) exchange.reset();
                                              done = true;
                                            });
  store.until([&] { return done; });
  if (ends) {
    CHECK(store.get("/torchelastic/assigned_ranks/0") == "(none)");
  } else {
    CHECK(store.await("/torchelastic/assigned_ranks/0") == "[0, 1, 0, 1]");
  }
}

TEST_CASE("rank exchange: beside another node 0, own nodes wait for their ranks", "[rendezvous]") {
  BoardStore store;
  Result result;
  RankExchange exchange(store.hand, {.group_size = 3, .own = {{1, {}}, {2, {}}}}, into(result));
  store.await("/torchelastic/role_info/2");
  store.hand.set("/torchelastic/assigned_ranks/1", "[5, 7, 0, 2]");
  store.hand.set("/torchelastic/assigned_ranks/2", "[6, 7, 1, 2]");
  store.until([&] { return result.done; });
  CHECK(result.ranks == std::map<int, AssignedRanks>{{1, {5, 7, 0, 2}}, {2, {6, 7, 1, 2}}});
}

// The host of a job takes every connection for one of another launcher's agents, and waits for it at the end.
TEST_CASE("rank exchange: no connection is left when all is said", "[rendezvous]") {
  BoardStore store;
  Result result;
  const bool first = GENERATE(true, false);
  RankExchange exchange(store.hand, {.group_size = 2, .own = {{first ? 0 : 1, RoleInfo{}}}}, into(result));
  if (first) {
    store.hand.set("/torchelastic/role_info/1", R"({"role": "default", "rank": 1, "local_world_size": 1})");
    CHECK(store.await("/torchelastic/assigned_ranks/1") == "[1, 2, 1, 2]");
  } else {
    store.hand.set("/torchelastic/assigned_ranks/1", "[1, 2, 1, 2]");
  }
  store.until([&] { return result.done && store.server->connections() == 1; });
}

TEST_CASE("rank exchange: says who is silent, and what makes no sense", "[rendezvous]") {
  BoardStore store;
  Result result;
  const auto soon = std::chrono::milliseconds(50);
  const std::string where = to_string(store.address);
  SECTION("no node 0") {
    RankExchange exchange(store.hand, {.group_size = 2, .own = {{1, {}}}, .timeout = soon}, into(result));
    store.until([&] { return result.done; });
    CHECK(result.error ==
          where + ": the node with rank 0 has given no ranks within 1 s (look at what that node says)");
  }
  SECTION("no other") {
    RankExchange exchange(store.hand, {.group_size = 2, .own = {{0, {}}}, .timeout = soon}, into(result));
    store.until([&] { return result.done; });
    CHECK(result.error.starts_with(where + ": not every node has said how many workers it runs"));
  }
  SECTION("nonsense") {
    store.hand.set("/torchelastic/role_info/1", "junk");
    RankExchange exchange(store.hand, {.group_size = 2, .own = {{0, {}}}}, into(result));
    store.until([&] { return result.done; });
    CHECK(result.error == "what a node says of its workers makes no sense: junk");
  }
  SECTION("the store is gone") {
    RankExchange exchange(store.hand, {.group_size = 2, .own = {{1, {}}}}, into(result));
    store.await("/torchelastic/role_info/1");
    store.server->reset();
    store.until([&] { return result.done; });
    CHECK(result.error ==
          where +
              ": the connection to the store of the rendezvous is lost (look at the node that "
              "hosts it)");
  }
}
