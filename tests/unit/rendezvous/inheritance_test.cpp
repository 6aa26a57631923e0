// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/inheritance.hpp"

#include "support/catch.hpp"

using namespace acc;

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
