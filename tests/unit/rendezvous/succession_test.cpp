// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/succession.hpp"

#include <algorithm>

#include "support/catch.hpp"

namespace succession_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("succession: after a network partition at most one part goes on", "[rendezvous]") {
  for (int nodes = 2; nodes <= 9; ++nodes) {
    for (int part = 1; part < nodes; ++part) {
      CAPTURE(nodes, part);
      CHECK_FALSE((may_succeed(part, nodes, 0) && may_succeed(nodes - part, nodes, 0)));
    }
  }
}

TEST_CASE("succession: dead nodes do not count", "[rendezvous]") {
  CHECK(may_succeed(1, 2, 1));
  CHECK_FALSE(may_succeed(1, 2, 0));
  CHECK(may_succeed(2, 3, 0));
  CHECK(may_succeed(2, 4, 1));
  CHECK_FALSE(may_succeed(1, 4, 1));
}

TEST_CASE("succession: a successor recognizes itself by its node port", "[rendezvous]") {
  const std::vector<NodeInfo> successors = {{.addr = "10.0.0.1", .node_port = 1},
                                            {.addr = "10.0.0.1", .node_port = 2}};
  CHECK(index_among(successors, {.addr = "10.0.0.1", .node_port = 2}) == 1U);
  CHECK_FALSE(index_among(successors, {.addr = "10.0.0.2", .node_port = 2}));
}

TEST_CASE("succession: a node counts for one coordinator alone", "[rendezvous]") {
  CHECK(counts_for({.round = 3}, 3, 4001));
  CHECK(counts_for({.round = 3, .asked_port = 4001}, 3, 4001));
  CHECK_FALSE(counts_for({.round = 3, .asked_port = 4002}, 3, 4001));
  CHECK_FALSE(counts_for({.round = 2}, 3, 4001));
  CHECK(counts_for({.round = 3, .asked_port = 4002}, 3, 4001, {4003, 4002}));  // that coordinator has ended
  CHECK_FALSE(counts_for({}, 0, 4001));                                        // it was in no round
}

TEST_CASE("succession: a successor knows which nodes have yet to connect", "[rendezvous]") {
  const std::vector<NodeInfo> successors = {{.addr = "a", .node_port = 1}, {.addr = "b", .node_port = 1}};
  const NodeInfo coordinator = {.addr = "h", .node_port = 1};
  CHECK(absent_nodes(successors, coordinator, successors[0], 3, {coordinator}) ==
        std::vector<NodeInfo>{successors[1]});
  CHECK(absent_nodes(successors, coordinator, successors[0], 3, {}) ==
        std::vector<NodeInfo>{coordinator, successors[1]});
  CHECK(absent_nodes(successors, coordinator, successors[1], 3, {coordinator, successors[0]}).empty());
  CHECK(absent_nodes(successors, coordinator, coordinator, 3, {}) == successors);
  CHECK(absent_nodes(successors, coordinator, successors[0], 5, {coordinator}).size() ==
        3);  // some nodes are unknown
}

namespace {

const NodeInfo kOld = {.addr = "10.0.0.1", .node_port = 1};
const NodeInfo kFirst = {.addr = "10.0.0.2", .node_port = 2};
const NodeInfo kSecond = {.addr = "10.0.0.3", .node_port = 3};

LastRound round_of_three() {
  LastRound round(true);
  round.begin({.number = 4,
               .ready = {.restarts = 1},
               .successors = {kFirst, kSecond},
               .coordinator = kOld,
               .nodes = 3});
  return round;
}

}  // namespace

TEST_CASE("succession: a successor, and each node that comes back, knows of restarts without progress",
          "[rendezvous]") {
  const Stall stall = {.first = {.is_known = true, .steps = 3}, .restarts = 1};
  LastRound round(true);
  round.begin({.number = 4, .nodes = 3, .stall = stall});
  CHECK(round.history().stall == stall);
  CHECK(round.succession(kFirst, false).stall == stall);
}

TEST_CASE("succession: a node asks the successors before it, and the old coordinator", "[rendezvous]") {
  LastRound round = round_of_three();
  using Addresses = std::vector<StoreAddress>;
  round.lose_coordinator(address_of(kOld), false);
  CHECK(round.candidates(kSecond) == Addresses{address_of(kFirst), address_of(kOld)});
  CHECK(round.candidates(kFirst) == Addresses{address_of(kOld)});
  round.lose_coordinator(address_of(kOld), true);  // a device in between may have closed the connection
  CHECK(round.candidates(kSecond) == Addresses{address_of(kOld), address_of(kFirst)});
  round.note_failed(address_of(kOld), false);
  CHECK(round.candidates(kSecond) == Addresses{address_of(kFirst)});
  round.note_failed(address_of(kFirst), true);
  CHECK(round.candidates(kSecond).empty());
  CHECK(round.is_dead(address_of(kFirst)));
}

TEST_CASE("succession: a node may lead with the larger part of the living nodes", "[rendezvous]") {
  LastRound round = round_of_three();
  round.lose_coordinator(address_of(kOld), false);
  CHECK_FALSE(round.may_lead(kFirst, {}));
  CHECK(round.may_lead(kFirst, {{.round = 4}}));
  CHECK_FALSE(round.may_lead(kFirst, {{.round = 4, .asked_port = 3}}));  // it counts for another
  CHECK_FALSE(round.may_lead(kFirst, {{.round = 3}}));
  round.note_failed(address_of(kOld), true);
  CHECK_FALSE(round.may_lead(kFirst, {}));
  CHECK(round.may_lead(kFirst, {{.round = 4, .asked_port = 1}}));  // the coordinator that it asked has ended
  round.ask({"10.0.0.9", 9});
  CHECK_FALSE(round.may_lead(kFirst, {{.round = 4}}));  // this node counts for another itself

  LastRound fixed(false);
  fixed.begin({.number = 1, .coordinator = kOld, .nodes = 2});
  fixed.lose_coordinator(address_of(kOld), true);
  fixed.note_failed(address_of(kOld), true);
  CHECK_FALSE(fixed.may_lead(kFirst, {}));
}

TEST_CASE("succession: a part that was cut off from the coordinator needs the larger part of all nodes",
          "[rendezvous]") {
  const bool was_closed = GENERATE(true, false);
  LastRound round = round_of_three();
  round.lose_coordinator(address_of(kOld), was_closed);
  round.note_failed(address_of(kOld), true);
  round.note_failed(address_of(kSecond), true);
  // The two may have gone on together before they ended.
  CHECK(round.may_lead(kFirst, {}) == was_closed);
  round.note_closed();  // it came back, and had no place for this node
  CHECK(round.may_lead(kFirst, {}) == was_closed);
  CHECK(round.may_lead(kFirst, {{.round = 4}}));
}

TEST_CASE("succession: a coordinator that has yielded may not go on alone when the others have ended",
          "[rendezvous]") {
  LastRound round(true);
  round.begin({.number = 4, .successors = {kFirst}, .coordinator = kOld, .nodes = 2});
  round.forget_coordinator();
  round.note_failed(address_of(kFirst), true);
  CHECK_FALSE(round.may_lead(kOld, {}));
}

TEST_CASE("succession: a node joins a host that was started anew unless others may go on without it",
          "[rendezvous]") {
  LastRound round = round_of_three();
  round.lose_coordinator(address_of(kOld), false);
  CHECK_FALSE(round.may_begin_anew(1, 0));
  CHECK_FALSE(round.may_begin_anew(2, 0));
  CHECK(round.may_begin_anew(3, 0));  // the other two are too few for the job
  CHECK(round.may_begin_anew(1, 1));  // the larger part is here
  SECTION("without the coordinator one of two others cannot") {
    round.lose_coordinator(address_of(kOld), true);
    round.note_failed(address_of(kOld), true);
    CHECK(round.may_begin_anew(1, 0));
  }
  SECTION("that one may have gone on with a silent coordinator before it ended") {
    round.note_failed(address_of(kOld), true);
    CHECK_FALSE(round.may_begin_anew(1, 0));
    round.note_failed(address_of(kSecond), true);
    CHECK(round.may_begin_anew(1, 0));
  }
  SECTION("those who have dropped it did, until they have ended") {
    round.forget();
    round.note_failed(address_of(kOld), true);
    CHECK_FALSE(round.may_begin_anew(1, 0));
    round.note_failed(address_of(kSecond), true);
    CHECK(round.may_begin_anew(1, 0));
  }
  SECTION("others of whom it knows only that they have all places may, too") {
    round.forget();
    round.note_failed(address_of(kOld), true);
    round.note_failed(address_of(kSecond), true);
    round.note_full(3);
    CHECK_FALSE(round.may_begin_anew(1, 0));
    round.begin({.number = 5, .successors = {kFirst}, .coordinator = kOld, .nodes = 2});
    round.lose_coordinator(address_of(kOld), true);
    round.note_failed(address_of(kOld), true);
    CHECK(round.may_begin_anew(1, 0));
  }
  SECTION("nobody does in a static job") {
    LastRound fixed(false);
    fixed.begin({.number = 1, .coordinator = kOld, .nodes = 3});
    CHECK(fixed.may_begin_anew(1, 0));
  }
}

TEST_CASE("succession: a node that asked a coordinator which has ended counts again", "[rendezvous]") {
  LastRound round = round_of_three();
  round.lose_coordinator(address_of(kOld), true);
  round.note_failed(address_of(kOld), true);
  const bool is_successor = GENERATE(true, false);
  CAPTURE(is_successor);
  const StoreAddress asked_address = is_successor ? address_of(kFirst) : StoreAddress{"10.0.0.9", 9};
  if (!is_successor) round.note_failed(address_of(kFirst), true);
  round.ask(asked_address);
  CHECK_FALSE(round.may_lead(kSecond, {}));
  CHECK(round.candidates(kSecond).front() == asked_address);  // whether it lives is asked first
  round.note_failed(asked_address, false);                    // silent
  CHECK_FALSE(round.may_lead(kSecond, {}));
  round.note_failed(asked_address, true);
  CHECK(round.history().asked_port == 0);
  CHECK(round.may_lead(kSecond, {}));
}

TEST_CASE("succession: a member that asked a successor which has ended counts for the next", "[rendezvous]") {
  LastRound round(true);
  round.begin({.number = 4, .successors = {kFirst, kSecond}, .coordinator = kOld, .nodes = 5});
  round.lose_coordinator(address_of(kOld), true);
  round.note_failed(address_of(kOld), true);
  round.note_failed(address_of(kFirst), true);
  CHECK_FALSE(round.may_lead(kSecond, {{.round = 4, .asked_port = 9}}));
  CHECK(round.may_lead(kSecond, {{.round = 4, .asked_port = kFirst.node_port}}));
}

TEST_CASE("succession: later successors that have ended leave the living nodes to the first",
          "[rendezvous]") {
  LastRound round = round_of_three();
  round.lose_coordinator(address_of(kOld), true);
  round.note_failed(address_of(kOld), true);
  CHECK(round.later_successors(kFirst) == std::vector<StoreAddress>{address_of(kSecond)});
  CHECK(round.later_successors(kSecond).empty());
  CHECK(round.later_successors(kOld).empty());  // no successor
  CHECK_FALSE(round.may_lead(kFirst, {}));
  round.note_failed(address_of(kSecond), true);
  CHECK(round.later_successors(kFirst).empty());
  CHECK(round.may_lead(kFirst, {}));
}

TEST_CASE(
    "succession: a coordinator that answers and closes the connection has ended only if it answers no more",
    "[rendezvous]") {
  LastRound pair(true);
  pair.begin({.number = 1, .successors = {kFirst}, .coordinator = kOld, .nodes = 2});
  pair.lose_coordinator(address_of(kOld), false);
  pair.note_closed();
  CHECK_FALSE(pair.is_dead(address_of(kOld)));
  CHECK(pair.candidates(kFirst) == std::vector<StoreAddress>{address_of(kOld)});
  pair.note_failed(address_of(kOld), false);
  CHECK(pair.is_dead(address_of(kOld)));
}

TEST_CASE("succession: a new coordinator continues from the last round", "[rendezvous]") {
  LastRound round = round_of_three();
  round.lose_coordinator(address_of(kOld), true);
  round.note_failed(address_of(kOld), true);
  const Succession next = round.succession(kFirst, true);
  CHECK(next.rounds == 4);
  CHECK(next.restarts == 2);
  CHECK(next.absent_nodes == std::vector<NodeInfo>{kSecond});
  CHECK(next.survivors == 1);
  CHECK(std::ranges::count(next.dead_ports, 1) > 0);
  CHECK(std::ranges::count(next.dead_ports, 3) == 0);
  CHECK(round.other_members(kFirst) == std::vector<StoreAddress>{address_of(kOld), address_of(kSecond)});
}

TEST_CASE("succession: a node without which the others went on does not count", "[rendezvous]") {
  LastRound round = round_of_three();
  CHECK_FALSE(round.is_unknown());
  round.forget();
  CHECK(round.number() == 0);
  CHECK_FALSE(round.may_lead(kFirst, {{.round = 4}, {.round = 4}}));
  CHECK(LastRound(true).is_unknown());
}

}  // namespace succession_test
