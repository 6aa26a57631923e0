// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/single_node.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

using namespace acc;

TEST_CASE("single_node: every round is on the port that the store keeps", "[launch]") {
  boost::asio::io_context loop;
  LaunchPlan plan;
  plan.master_addr = "localhost";
  SingleNode rendezvous(loop, plan);
  const Round first = rendezvous.next_round();
  CHECK(first.master_port != 0);
  CHECK(first.master_addr == "localhost");
  CHECK(rendezvous.next_round() == first);
}

TEST_CASE("single_node: a plain process has no store", "[launch]") {
  boost::asio::io_context loop;
  LaunchPlan plan;
  plan.sets_ranks = false;
  SingleNode rendezvous(loop, plan);
  CHECK(rendezvous.next_round().master_port == 0);
}

TEST_CASE("single_node: is not taken for a job of several machines", "[launch]") {
  boost::asio::io_context loop;
  LaunchPlan plan;
  plan.rendezvous.most_nodes = 2;
  CHECK(test::error_of([&] { SingleNode(loop, plan); }) == "this version starts jobs of one machine");
}

TEST_CASE("single_node: the port of a store that a worker serves is kept for it", "[launch]") {
  boost::asio::io_context loop;
  LaunchPlan plan;
  plan.use_agent_store = false;
  SingleNode rendezvous(loop, plan);
  const Round first = rendezvous.next_round();
  CHECK_FALSE(first.use_agent_store);
  CHECK(first.master_port != 0);
  CHECK(rendezvous.next_round() == first);
}
