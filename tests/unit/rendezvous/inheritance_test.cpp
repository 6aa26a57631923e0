// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/inheritance.hpp"

#include "support/catch.hpp"

using namespace acc;
using namespace acc::launcher;

TEST_CASE("inheritance: of a cut network at most one part goes on", "[rendezvous]") {
  for (int nodes = 2; nodes <= 9; ++nodes) {
    for (int one = 1; one < nodes; ++one) {
      CAPTURE(nodes, one);
      CHECK_FALSE((may_inherit(one, nodes, 0) && may_inherit(nodes - one, nodes, 0)));
    }
  }
}

TEST_CASE("inheritance: nodes that are known to be dead are no part of it", "[rendezvous]") {
  CHECK(may_inherit(1, 2, 1));
  CHECK_FALSE(may_inherit(1, 2, 0));
  CHECK(may_inherit(2, 3, 0));
  CHECK(may_inherit(2, 4, 1));
  CHECK_FALSE(may_inherit(1, 4, 1));
}

TEST_CASE("inheritance: an heir knows itself by where nodes link to it", "[rendezvous]") {
  const std::vector<NodeInfo> heirs = {{.addr = "10.0.0.1", .link_port = 1},
                                       {.addr = "10.0.0.1", .link_port = 2}};
  CHECK(place_among(heirs, {.addr = "10.0.0.1", .link_port = 2}) == 1U);
  CHECK_FALSE(place_among(heirs, {.addr = "10.0.0.2", .link_port = 2}));
}

TEST_CASE("inheritance: a node counts for one hub alone", "[rendezvous]") {
  CHECK(counts_for({.round = 3}, 3, 4001));
  CHECK(counts_for({.round = 3, .asked = 4001}, 3, 4001));
  CHECK_FALSE(counts_for({.round = 3, .asked = 4002}, 3, 4001));
  CHECK_FALSE(counts_for({.round = 2}, 3, 4001));
  CHECK(counts_for({.round = 3, .asked = 4002}, 3, 4001, 4002));  // that hub has ended
  CHECK_FALSE(counts_for({}, 0, 4001));                           // it was in no round
}

TEST_CASE("inheritance: an heir knows of how many nodes it has yet to hear", "[rendezvous]") {
  const std::vector<NodeInfo> heirs = {{.addr = "a", .link_port = 1}, {.addr = "b", .link_port = 1}};
  const NodeInfo hub = {.addr = "h", .link_port = 1};
  CHECK(yet_to_come(heirs, hub, heirs[0], 3, {hub}) == std::vector<NodeInfo>{heirs[1]});
  CHECK(yet_to_come(heirs, hub, heirs[0], 3, {}) == std::vector<NodeInfo>{hub, heirs[1]});
  CHECK(yet_to_come(heirs, hub, heirs[1], 3, {hub, heirs[0]}).empty());
  CHECK(yet_to_come(heirs, hub, hub, 3, {}) == heirs);
  CHECK(yet_to_come(heirs, hub, heirs[0], 5, {hub}).size() == 3);  // of some, only that there are
}
