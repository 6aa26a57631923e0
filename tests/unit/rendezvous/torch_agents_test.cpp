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

namespace torch_agents_test {

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

RankExchange::OnDone into(Result& result) {
  return [&result](const auto& error, const auto& ranks) {
    result.done = true;
    if (error) result.error = error->what();
    result.ranks = ranks;
  };
}

}  // namespace

TEST_CASE("torch_agents: an own node 0 assigns ranks when all role infos are there", "[rendezvous]") {
  BackendStore store;
  Result result;
  RankExchange exchange(store.peer,
                        {.prefix = "/p/",
                         .group_size = 3,
                         .own_nodes = {{0, {"default", 2}}, {2, {"default", 1}}},
                         .first_pairs = {{"/p/MASTER_ADDR", "here"}}},
                        into(result));
  CHECK(store.await("/p/torchelastic/role_info/2") ==
        R"({"role": "default", "rank": 2, "local_world_size": 1})");
  CHECK(store.get("/p/MASTER_ADDR") == "here");
  CHECK(store.get("/p/torchelastic/assigned_ranks/1") == "(none)");
  CHECK_FALSE(result.done);
  store.peer.set("/p/torchelastic/role_info/1", R"({"role": "other", "rank": 1, "local_world_size": 4})");
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
  exchange = std::make_unique<RankExchange>(store.peer, RankExchange::Options{.own_nodes = {{0, {}}}},
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
  RankExchange exchange(store.peer, {.group_size = 3, .own_nodes = {{1, {}}, {2, {}}}}, into(result));
  store.await("/torchelastic/role_info/2");
  store.peer.set("/torchelastic/assigned_ranks/1", "[5, 7, 0, 2]");
  store.peer.set("/torchelastic/assigned_ranks/2", "[6, 7, 1, 2]");
  store.until([&] { return result.done; });
  CHECK(result.ranks == std::map<int, AssignedRanks>{{1, {5, 7, 0, 2}}, {2, {6, 7, 1, 2}}});
}

// The host of a job counts every connection as an agent of another launcher, and waits for it at the end.
TEST_CASE("torch_agents: closes its connection at the end", "[rendezvous]") {
  BackendStore store;
  Result result;
  const bool first = GENERATE(true, false);
  RankExchange exchange(store.peer, {.group_size = 2, .own_nodes = {{first ? 0 : 1, RoleInfo{}}}},
                        into(result));
  if (first) {
    store.peer.set("/torchelastic/role_info/1", R"({"role": "default", "rank": 1, "local_world_size": 1})");
    CHECK(store.await("/torchelastic/assigned_ranks/1") == "[1, 2, 1, 2]");
  } else {
    store.peer.set("/torchelastic/assigned_ranks/1", "[1, 2, 1, 2]");
  }
  store.until([&] { return result.done && store.server->connections() == 1; });
}

TEST_CASE("torch_agents: reports who is silent, and what cannot be parsed", "[rendezvous]") {
  BackendStore store;
  Result result;
  const auto soon = std::chrono::milliseconds(50);
  const std::string address = to_string(store.address);
  SECTION("no node 0") {
    RankExchange exchange(store.peer, {.group_size = 2, .own_nodes = {{1, {}}}, .timeout = soon},
                          into(result));
    store.until([&] { return result.done; });
    CHECK(result.error ==
          address + ": the node with rank 0 has given no ranks within 1 s (look at the output of that node)");
  }
  SECTION("no other") {
    RankExchange exchange(store.peer, {.group_size = 2, .own_nodes = {{0, {}}}, .timeout = soon},
                          into(result));
    store.until([&] { return result.done; });
    CHECK(result.error.starts_with(address + ": not every node has reported its worker count"));
  }
  SECTION("nonsense") {
    store.peer.set("/torchelastic/role_info/1", "junk");
    RankExchange exchange(store.peer, {.group_size = 2, .own_nodes = {{0, {}}}}, into(result));
    store.until([&] { return result.done; });
    CHECK(result.error == "the role info of a node cannot be parsed: junk");
  }
  SECTION("the store is gone") {
    RankExchange exchange(store.peer, {.group_size = 2, .own_nodes = {{1, {}}}}, into(result));
    store.await("/torchelastic/role_info/1");
    store.server->reset();
    store.until([&] { return result.done; });
    CHECK(result.error ==
          address +
              ": the connection to the store of the rendezvous is lost (look at the node that "
              "hosts it)");
  }
}

using acc::launcher::assign_ranks;

TEST_CASE("torch_agents: ranks are assigned node by node, and separately by role", "[rendezvous]") {
  CHECK(assign_ranks({{"train", 2}, {"eval", 1}, {"train", 3}}) ==
        std::vector<AssignedRanks>{{0, 6, 0, 5}, {2, 6, 0, 1}, {3, 6, 2, 5}});
  CHECK(assign_ranks({{"default", 8}}) == std::vector<AssignedRanks>{{0, 8, 0, 8}});
}

TEST_CASE("torch_agents: the texts are torchrun's, byte for byte", "[rendezvous]") {
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

TEST_CASE("torch_agents: invalid text is an error that shows it", "[rendezvous]") {
  const std::string info =
      GENERATE("", "{}", R"({"role": 1, "local_world_size": 2})", R"({"role": "a", "local_world_size": -1})",
               R"({"role": "a", "local_world_size": 1e9})", R"({"role": "a", "local_world_size": "2"})");
  CHECK(acc::test::error_of([&] { acc::launcher::read_role_info(info); }) ==
        "the role info of a node cannot be parsed: " + info);
  const std::string ranks = GENERATE("[1, 2, 3]", "{}", "[0, 99999999999, 0, 1]",
                                     "[44444444444444444444, 1, 0, 1]", "[0.5, 1, 0, 1]");
  CHECK(acc::test::error_of([&] { acc::launcher::read_assigned_ranks(ranks); }) ==
        "the ranks assigned by node 0 cannot be parsed: " + ranks);
}

namespace {

using acc::launcher::ExitBarrier;

constexpr const char* kMembers = "/p/torchelastic/agent/terminal_state/num_members";
constexpr const char* kLast = "/p/torchelastic/agent/terminal_state/last_member";

ExitBarrier::Options options(int nodes) {
  return {.prefix = "/p/", .group_size = 4, .nodes = nodes};
}

}  // namespace

TEST_CASE("torch_agents: the last node releases the exit barrier", "[rendezvous]") {
  BackendStore store;
  std::optional<bool> one;
  std::optional<bool> two;
  ExitBarrier first(store.peer, options(3), [&](bool is_complete) { one = is_complete; });
  store.await(kMembers);
  CHECK(store.get(kMembers) == "3");
  CHECK(store.get(kLast) == "(none)");
  CHECK_FALSE(one.has_value());
  ExitBarrier last(store.peer, options(1), [&](bool is_complete) { two = is_complete; });
  store.until([&] { return one && two; });
  CHECK(*one);
  CHECK(*two);
  CHECK(store.get(kLast) == "<val_ignored>");
}

TEST_CASE("torch_agents: the exit barrier has a timeout", "[rendezvous]") {
  BackendStore store;
  std::optional<bool> result;
  ExitBarrier::Options soon = options(3);
  soon.timeout = std::chrono::milliseconds(20);
  ExitBarrier barrier(store.peer, soon, [&](bool is_complete) { result = is_complete; });
  store.until([&] { return result.has_value(); });
  CHECK_FALSE(*result);
}

TEST_CASE("torch_agents: a lost store ends the exit barrier", "[rendezvous]") {
  BackendStore store;
  std::optional<bool> result;
  ExitBarrier barrier(store.peer, options(3), [&](bool is_complete) { result = is_complete; });
  store.await(kMembers);
  store.server->reset();
  store.until([&] { return result.has_value(); });
  CHECK_FALSE(*result);
}

}  // namespace torch_agents_test
