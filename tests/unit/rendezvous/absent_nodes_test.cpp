// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/absent_nodes.hpp"

#include <cstdint>
#include <string>

#include "support/catch.hpp"

namespace {

using namespace acc::launcher;

// Each on a machine of its own, or all on `host`.
NodeInfo node(int number, const std::string& host = "") {
  return {.host = host.empty() ? "node" + std::to_string(number) : host,
          .addr = "10.0.0.1",
          .pid = 100 + number,
          .node_port = static_cast<std::uint16_t>(5000 + number)};
}

// A coordinator that has led a round, and goes on with itself alone if it must.
AbsentNodes led_round(int min_nodes = 1) {
  AbsentNodes absent({.min_nodes = min_nodes, .has_led = true});
  absent.begin_round();
  return absent;
}

bool come_back(AbsentNodes& absent, const NodeInfo& info, const NodeHistory& history, bool is_member,
               bool others_are_connected = false) {
  return absent.come_back({.node = info,
                           .history = history,
                           .is_member = is_member,
                           .round = 1,
                           .is_connected = [=](const NodeInfo&) { return others_are_connected; },
                           .members = [] { return 1; }});
}

}  // namespace

TEST_CASE("absent_nodes: of two equal parts the one goes on whose coordinator has led the round",
          "[rendezvous]") {
  const bool has_led = GENERATE(true, false);
  const AbsentNodes absent({.nodes = {node(2), node(3)}, .has_led = has_led});
  CHECK(absent.is_smaller_part(1));
  CHECK(absent.is_smaller_part(2) == !has_led);
  CHECK_FALSE(absent.is_smaller_part(3));
}

TEST_CASE("absent_nodes: silent nodes may be led elsewhere if they are enough for a round", "[rendezvous]") {
  AbsentNodes absent = led_round(2);
  absent.add_silent(node(1), true);
  CHECK_FALSE(absent.may_be_led_elsewhere(0));
  absent.add_silent(node(2), true);
  CHECK(absent.may_be_led_elsewhere(1));
  CHECK(absent.addresses() == std::vector<StoreAddress>{{"10.0.0.1", 5001}, {"10.0.0.1", 5002}});
}

TEST_CASE("absent_nodes: nodes that have ended count while others are silent, whichever is known first",
          "[rendezvous]") {
  AbsentNodes absent = led_round();
  absent.add_ended(node(1), true);
  CHECK_FALSE(absent.is_smaller_part(1));
  absent.add_silent(node(2), true);
  CHECK(absent.is_smaller_part(1));
  CHECK(absent.dead_ports() == std::vector<int>{5001});
  CHECK_FALSE(come_back(absent, node(2), {.round = 1}, true));
  CHECK_FALSE(absent.is_smaller_part(1));
}

TEST_CASE("absent_nodes: they do not count where those that are silent are too few for a round",
          "[rendezvous]") {
  AbsentNodes absent = led_round(2);
  absent.add_ended(node(1), true);
  absent.add_silent(node(2), true);
  CHECK_FALSE(absent.is_smaller_part(1));
}

TEST_CASE("absent_nodes: a new process shows that the one before it on its machine has ended",
          "[rendezvous]") {
  AbsentNodes absent = led_round();
  absent.add_silent(node(1, "a"), true);
  CHECK_FALSE(come_back(absent, node(7, "b"), {}, false));
  SECTION("a new process") {
    CHECK(come_back(absent, node(7, "a"), {}, false));
    CHECK(absent.size() == 0);
    CHECK(absent.dead_ports() == std::vector<int>{5001});
  }
  SECTION("but not one that was dropped, or was in another round") {
    CHECK_FALSE(come_back(absent, node(7, "a"), {.dropped_round = 1}, false));
    CHECK_FALSE(come_back(absent, node(7, "a"), {.round = 2}, false));
  }
  SECTION("nor when the other one is connected") {
    CHECK_FALSE(come_back(absent, node(7, "a"), {}, false, true));
  }
  SECTION("nor when it may have been started for one that is known to have ended") {
    absent.add_ended(node(2, "a"), true);
    CHECK_FALSE(come_back(absent, node(7, "a"), {}, false));
  }
}

TEST_CASE("absent_nodes: a node that has not entered a round may go on with those that were absent before",
          "[rendezvous]") {
  AbsentNodes absent = led_round();
  absent.add_silent(node(1), true);
  absent.add_silent(node(2), true);
  absent.begin_round();
  CHECK(absent.size() == 0);
  CHECK(absent.with_earlier().size() == 2);
  SECTION("it has entered it") {
    absent.add_silent(node(3), true);
    CHECK(absent.size() == 1);
  }
  SECTION("it is silent") {
    absent.add_silent(node(3), false);
    CHECK(absent.size() == 3);
  }
  SECTION("it has ended") {
    absent.add_ended(node(3), false);
    CHECK(absent.size() == 2);
    CHECK(absent.is_smaller_part(2));
  }
  SECTION("one of those is here, and another was started again") {
    come_back(absent, node(1), {.round = 1}, false);
    come_back(absent, node(7, "node2"), {}, false);
    absent.add_silent(node(3), false);
    CHECK(absent.size() == 1);
    CHECK(absent.dead_ports() == std::vector<int>{5002});
  }
}

TEST_CASE("absent_nodes: a node that others have dropped shows that they go on", "[rendezvous]") {
  AbsentNodes absent = led_round();
  absent.add_silent(node(1), true);
  absent.add_silent(node(2), true);
  const int dropped_round = GENERATE(1, 2);
  come_back(absent, node(1), {.dropped_round = dropped_round}, false);
  CHECK(absent.is_smaller_part(2) == (dropped_round == 2));
}

TEST_CASE("absent_nodes: a member may be the one of which nothing is known", "[rendezvous]") {
  AbsentNodes absent({.nodes = {NodeInfo{}}});
  come_back(absent, node(4), {.round = 1}, true);
  CHECK(absent.size() == 0);
}

TEST_CASE("absent_nodes: a process that has ended is known by its address", "[rendezvous]") {
  AbsentNodes absent({.nodes = {node(1), node(2)}});
  CHECK_FALSE(absent.end({"10.0.0.1", 5003}, 1));
  CHECK(absent.end({"10.0.0.1", 5001}, 1));
  CHECK(absent.size() == 1);
  CHECK_FALSE(absent.contains(node(1)));
  CHECK(absent.contains(node(2)));
}
