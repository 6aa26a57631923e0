// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/single_node.hpp"

#include "support/catch.hpp"
#include "support/kept_events.hpp"

namespace single_node_test {

using namespace acc;
using namespace acc::launcher;
using test::KeptEvents;

TEST_CASE("single_node: every round is on the port that the store keeps", "[rendezvous]") {
  boost::asio::io_context loop;
  LaunchPlan plan;
  plan.master_addr = "localhost";
  plan.nproc_per_node = 2;
  SingleNode rendezvous(loop, plan);
  KeptEvents events(rendezvous);
  rendezvous.join();
  const RoundReady first = events.last<RoundReady>();
  CHECK(first.round.master_port != 0);
  CHECK(first.round.master_addr == "localhost");
  CHECK(first.round.world_size == 2);
  CHECK(first.restarts == 0);
  rendezvous.fail({.restart = true, .failure = "f"});
  CHECK(events.last<RoundOver>() == RoundOver{.restart = true, .failure = "f"});
  rendezvous.join();
  CHECK(events.last<RoundReady>() == RoundReady{first.round, 1});
}

TEST_CASE("single_node: restarts without progress end the job with the worker's code", "[rendezvous]") {
  boost::asio::io_context loop;
  LaunchPlan plan;
  plan.restarts_without_progress = 1;
  SingleNode rendezvous(loop, plan);
  KeptEvents events(rendezvous);
  const RoundOver failure = {
      .restart = true, .failure = "f", .exit_code = 7, .reached = {.is_known = true, .steps = 3}};
  rendezvous.join();
  rendezvous.fail(failure);
  CHECK(events.last<RoundOver>() == failure);
  rendezvous.join();
  rendezvous.fail(failure);
  const RoundOver verdict = events.last<RoundOver>();
  CHECK_FALSE(verdict.restart);
  CHECK(verdict.failure == "f");
  CHECK(verdict.exit_code == 7);
  CHECK(verdict.reason.starts_with("not restarted: no rank got beyond step 3"));
}

TEST_CASE("single_node: a plain process has no store", "[rendezvous]") {
  boost::asio::io_context loop;
  LaunchPlan plan;
  plan.sets_ranks = false;
  SingleNode rendezvous(loop, plan);
  KeptEvents events(rendezvous);
  rendezvous.join();
  CHECK(events.last<RoundReady>().round.master_port == 0);
}

TEST_CASE("single_node: leaves at once", "[rendezvous]") {
  boost::asio::io_context loop;
  SingleNode rendezvous(loop, {});
  KeptEvents events(rendezvous);
  rendezvous.finish();
  CHECK(events.has<JobDone>());
  rendezvous.leave("", 0);
  CHECK(events.has<Left>());
}

TEST_CASE("single_node: reserves the port of a store that a worker serves", "[rendezvous]") {
  boost::asio::io_context loop;
  LaunchPlan plan;
  plan.use_agent_store = false;
  SingleNode rendezvous(loop, plan);
  KeptEvents events(rendezvous);
  rendezvous.join();
  const Round first = events.last<RoundReady>().round;
  CHECK_FALSE(first.use_agent_store);
  CHECK(first.master_port != 0);
  rendezvous.join();
  CHECK(events.last<RoundReady>().round == first);
}

}  // namespace single_node_test
