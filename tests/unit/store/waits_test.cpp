// SPDX-License-Identifier: Apache-2.0
#include "acc/store/waits.hpp"

#include <vector>

#include "support/catch.hpp"

namespace waits_test {

using acc::launcher::Waits;
using Clients = std::vector<acc::launcher::ClientId>;

namespace {

void wait(Waits& waits, acc::launcher::ClientId client, const std::vector<std::string>& keys) {
  waits.begin(client);
  for (const std::string& key : keys) waits.add(client, key);
  CHECK_FALSE(waits.all_added(client));
}

}  // namespace

TEST_CASE("waits: all clients that wait for a key are woken, in order of arrival", "[store]") {
  Waits waits;
  for (const acc::launcher::ClientId client : {3, 1, 2}) wait(waits, client, {"k"});
  waits.appeared("other");
  CHECK(waits.take_woken().empty());
  waits.appeared("k");
  CHECK(waits.take_woken() == Clients{3, 1, 2});
  CHECK(waits.take_woken().empty());
  CHECK(waits.size() == 0);
}

TEST_CASE("waits: a wait for several keys ends with the last", "[store]") {
  Waits waits;
  wait(waits, 1, {"a", "b", "a", "c"});
  waits.appeared("a");
  waits.appeared("a");
  waits.appeared("c");
  CHECK(waits.take_woken().empty());
  waits.appeared("b");
  CHECK(waits.take_woken() == Clients{1});
}

TEST_CASE("waits: a cancelled wait is not woken", "[store]") {
  Waits waits;
  wait(waits, 1, {"a", "b"});
  wait(waits, 2, {"b"});
  waits.appeared("a");
  waits.cancel(1);
  waits.cancel(1);
  waits.appeared("b");
  CHECK(waits.take_woken() == Clients{2});
}

TEST_CASE("waits: a new wait replaces the old one", "[store]") {
  Waits waits;
  wait(waits, 1, {"a"});
  SECTION("wait") {
    wait(waits, 1, {"b"});
  }
  SECTION("barrier") {
    waits.block(1, "b", 2);
  }
  waits.appeared("a");
  CHECK(waits.take_woken().empty());
  CHECK(waits.size() == 1);
}

TEST_CASE("waits: a push wakes the client that has waited longest", "[store]") {
  Waits waits;
  wait(waits, 2, {"q"});
  wait(waits, 1, {"q"});
  waits.pushed("q");
  CHECK(waits.take_woken() == Clients{2});
  CHECK(waits.turns("q") == 1);
  waits.pushed("q");
  waits.pushed("q");
  CHECK(waits.take_woken() == Clients{1});
  CHECK(waits.turns("q") == 2);
}

TEST_CASE("waits: a push serves one key of a wait for several", "[store]") {
  Waits waits;
  wait(waits, 1, {"q", "k"});
  waits.pushed("q");
  waits.pushed("q");
  CHECK(waits.take_woken().empty());
  waits.appeared("k");
  CHECK(waits.take_woken() == Clients{1});
}

TEST_CASE("waits: a turn ends once", "[store]") {
  Waits waits;
  wait(waits, 1, {"q"});
  waits.pushed("q");
  CHECK(waits.end_turns(1) == std::vector<std::string>{"q"});
  CHECK(waits.end_turns(1).empty());
  CHECK(waits.turns("q") == 0);
}

TEST_CASE("waits: a barrier opens for its count and no sooner", "[store]") {
  Waits waits;
  waits.block(1, "b", 3);
  waits.block(2, "b", 3);
  waits.block(3, "b", 9);
  CHECK(waits.anyone_blocked("b"));
  waits.appeared("b");
  waits.counted("b", 2);
  CHECK(waits.take_woken().empty());
  waits.counted("b", 3);
  CHECK(waits.take_woken() == Clients{1, 2});
  waits.cancel(3);
  CHECK_FALSE(waits.anyone_blocked("b"));
}

TEST_CASE("waits: a cancelled wait leaves nothing", "[store]") {
  Waits waits;
  wait(waits, 1, {"a", "b"});
  waits.cancel(1);
  waits.block(1, "c", 2);
  waits.cancel(1);
  CHECK(waits.size() == 0);
  CHECK_FALSE(waits.anyone_blocked("c"));
}

TEST_CASE("waits: a wait is not woken before all keys are added, and then need not wait if they exist",
          "[store]") {
  Waits waits;
  waits.begin(1);
  waits.add(1, "a");
  waits.appeared("a");
  waits.add(1, "b");
  waits.appeared("b");
  CHECK(waits.take_woken().empty());
  CHECK(waits.all_added(1));
  CHECK(waits.size() == 0);
  waits.begin(2);
  CHECK(waits.all_added(2));
}

TEST_CASE("waits: one push serves a queue that a wait has twice", "[store]") {
  Waits waits;
  wait(waits, 1, {"q", "q"});
  wait(waits, 2, {"q"});
  waits.pushed("q");
  CHECK(waits.take_woken() == Clients{1});
  waits.pushed("q");
  CHECK(waits.take_woken() == Clients{2});
}

TEST_CASE("waits: a long cancelled wait is removed in pieces, and not counted meanwhile", "[store]") {
  Waits waits;
  std::vector<std::string> keys = {"q"};
  for (int i = 0; i < 1000; ++i) keys.push_back(std::to_string(i));
  wait(waits, 1, keys);
  CHECK(waits.cost(1) > 1000 * 3);
  waits.cancel(1);
  CHECK(waits.cost(1) == 0);
  CHECK(waits.size() == 0);
  CHECK(waits.sweep(1));
  wait(waits, 1, {"5"});
  wait(waits, 2, {"q"});
  waits.appeared("7");
  waits.pushed("q");
  CHECK(waits.take_woken() == Clients{2});
  waits.appeared("5");
  CHECK(waits.take_woken() == Clients{1});
  CHECK_FALSE(waits.sweep(2000));
  waits.appeared("9");
  CHECK(waits.take_woken().empty());
}

}  // namespace waits_test
