// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/torch_agents.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/backend_store.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace {

using acc::launcher::AssignedRanks;
using acc::launcher::RankExchange;
using acc::launcher::RoleInfo;
using acc::test::BackendStore;

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

TEST_CASE("torch_agents: an own node 0 gives ranks when all have said what they run", "[rendezvous]") {
  BackendStore store;
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

TEST_CASE("torch_agents: others get their ranks when the own nodes have theirs", "[rendezvous]") {
  BackendStore store;
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

TEST_CASE("torch_agents: beside another node 0, own nodes wait for their ranks", "[rendezvous]") {
  BackendStore store;
  Result result;
  RankExchange exchange(store.hand, {.group_size = 3, .own = {{1, {}}, {2, {}}}}, into(result));
  store.await("/torchelastic/role_info/2");
  store.hand.set("/torchelastic/assigned_ranks/1", "[5, 7, 0, 2]");
  store.hand.set("/torchelastic/assigned_ranks/2", "[6, 7, 1, 2]");
  store.until([&] { return result.done; });
  CHECK(result.ranks == std::map<int, AssignedRanks>{{1, {5, 7, 0, 2}}, {2, {6, 7, 1, 2}}});
}

// The host of a job takes every connection for one of another launcher's agents, and waits for it at the end.
TEST_CASE("torch_agents: no connection is left when all is said", "[rendezvous]") {
  BackendStore store;
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

TEST_CASE("torch_agents: says who is silent, and what makes no sense", "[rendezvous]") {
  BackendStore store;
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

using acc::launcher::assign_ranks;

TEST_CASE("torch_agents: one node after the other, and each role by itself", "[rendezvous]") {
  CHECK(assign_ranks({{"train", 2}, {"eval", 1}, {"train", 3}}) ==
        std::vector<AssignedRanks>{{0, 6, 0, 5}, {2, 6, 0, 1}, {3, 6, 2, 5}});
  CHECK(assign_ranks({{"default", 8}}) == std::vector<AssignedRanks>{{0, 8, 0, 8}});
}

TEST_CASE("torch_agents: the texts are torchrun's, letter for letter", "[rendezvous]") {
  CHECK(to_json(RoleInfo{"default", 2}, 1) == R"({"role": "default", "rank": 1, "local_world_size": 2})");
  CHECK(to_json(RoleInfo{"a\"b\xc3\xa9", 2}, 0) ==
        R"({"role": "a\"b\u00e9", "rank": 0, "local_world_size": 2})");
  CHECK(to_json(AssignedRanks{2, 4, 1, 3}) == "[2, 4, 1, 3]");
}

TEST_CASE("torch_agents: what is written can be read", "[rendezvous]") {
  const RoleInfo info = {"tr\xc3\xa4in", 7};
  CHECK(acc::launcher::read_role_info(to_json(info, 3)) == info);
  const AssignedRanks ranks = {2, 4, 1, 3};
  CHECK(acc::launcher::read_assigned_ranks(to_json(ranks)) == ranks);
}

TEST_CASE("torch_agents: anything else is refused with its text", "[rendezvous]") {
  const std::string info =
      GENERATE("", "{}", R"({"role": 1, "local_world_size": 2})", R"({"role": "a", "local_world_size": -1})",
               R"({"role": "a", "local_world_size": 1e9})", R"({"role": "a", "local_world_size": "2"})");
  CHECK(acc::test::error_of([&] { acc::launcher::read_role_info(info); }) ==
        "what a node says of its workers makes no sense: " + info);
  const std::string ranks = GENERATE("[1, 2, 3]", "{}", "[0, 99999999999, 0, 1]", "[0.5, 1, 0, 1]");
  CHECK(acc::test::error_of([&] { acc::launcher::read_assigned_ranks(ranks); }) ==
        "what node 0 says of the ranks makes no sense: " + ranks);
}

namespace {

using acc::launcher::ExitBarrier;

constexpr const char* kMembers = "/p/torchelastic/agent/terminal_state/num_members";
constexpr const char* kLast = "/p/torchelastic/agent/terminal_state/last_member";

ExitBarrier::Options options(int own) {
  return {.prefix = "/p/", .group_size = 4, .own = own};
}

}  // namespace

TEST_CASE("torch_agents: whoever comes last lets all go", "[rendezvous]") {
  BackendStore store;
  std::optional<bool> one;
  std::optional<bool> two;
  ExitBarrier first(store.hand, options(3), [&](bool all) { one = all; });
  store.await(kMembers);
  CHECK(store.get(kMembers) == "3");
  CHECK(store.get(kLast) == "(none)");
  CHECK_FALSE(one.has_value());
  ExitBarrier last(store.hand, options(1), [&](bool all) { two = all; });
  store.until([&] { return one && two; });
  CHECK(*one);
  CHECK(*two);
  CHECK(store.get(kLast) == "<val_ignored>");
}

TEST_CASE("torch_agents: who does not come in time is not waited for", "[rendezvous]") {
  BackendStore store;
  std::optional<bool> result;
  ExitBarrier::Options soon = options(3);
  soon.timeout = std::chrono::milliseconds(20);
  ExitBarrier barrier(store.hand, soon, [&](bool all) { result = all; });
  store.until([&] { return result.has_value(); });
  CHECK_FALSE(*result);
}

TEST_CASE("torch_agents: a lost store ends it", "[rendezvous]") {
  BackendStore store;
  std::optional<bool> result;
  ExitBarrier barrier(store.hand, options(3), [&](bool all) { result = all; });
  store.await(kMembers);
  store.server->reset();
  store.until([&] { return result.has_value(); });
  CHECK_FALSE(*result);
}
