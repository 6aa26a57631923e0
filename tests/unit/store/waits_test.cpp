// SPDX-License-Identifier: Apache-2.0
#include "acc/store/waits.hpp"

#include <vector>

#include "support/catch.hpp"

using acc::Waits;
using Clients = std::vector<acc::ClientId>;

TEST_CASE("waits: everyone who waits for a key is woken, in order of arrival", "[store]") {
  Waits waits;
  for (const acc::ClientId client : {3, 1, 2}) waits.wait(client, {"k"});
  waits.appeared("other");
  CHECK(waits.take_woken().empty());
  waits.appeared("k");
  CHECK(waits.take_woken() == Clients{3, 1, 2});
  CHECK(waits.take_woken().empty());
  CHECK(waits.size() == 0);
}

TEST_CASE("waits: who waits for several keys is woken with the last", "[store]") {
  Waits waits;
  waits.wait(1, {"a", "b", "a", "c"});
  waits.appeared("a");
  waits.appeared("a");
  waits.appeared("c");
  CHECK(waits.take_woken().empty());
  waits.appeared("b");
  CHECK(waits.take_woken() == Clients{1});
}

TEST_CASE("waits: who cancelled is not woken", "[store]") {
  Waits waits;
  waits.wait(1, {"a", "b"});
  waits.wait(2, {"b"});
  waits.appeared("a");
  waits.cancel(1);
  waits.cancel(1);
  waits.appeared("b");
  CHECK(waits.take_woken() == Clients{2});
}

TEST_CASE("waits: a new wait takes the place of the old", "[store]") {
  Waits waits;
  waits.wait(1, {"a"});
  SECTION("wait") {
    waits.wait(1, {"b"});
  }
  SECTION("barrier") {
    waits.block(1, "b", 2);
  }
  waits.appeared("a");
  CHECK(waits.take_woken().empty());
  CHECK(waits.size() == 1);
}

TEST_CASE("waits: a push wakes one, the longest waiting", "[store]") {
  Waits waits;
  waits.wait(2, {"q"});
  waits.wait(1, {"q"});
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
  waits.wait(1, {"q", "k"});
  waits.pushed("q");
  waits.pushed("q");
  CHECK(waits.take_woken().empty());
  waits.appeared("k");
  CHECK(waits.take_woken() == Clients{1});
}

TEST_CASE("waits: a turn ends once", "[store]") {
  Waits waits;
  waits.wait(1, {"q"});
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

TEST_CASE("waits: nothing stays of a client that cancelled", "[store]") {
  Waits waits;
  waits.wait(1, {"a", "b"});
  waits.cancel(1);
  waits.block(1, "c", 2);
  waits.cancel(1);
  CHECK(waits.size() == 0);
  CHECK_FALSE(waits.anyone_blocked("c"));
}
