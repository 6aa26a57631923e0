// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/coordinator.hpp"

#include <algorithm>
#include <csignal>
#include <limits>
#include <map>

#include "support/catch.hpp"

namespace coordinator_test {

using namespace acc;
using namespace acc::launcher;

namespace {

// A backend with own nodes only: complete with `max_nodes` of them, or when the test says so.
struct FakeBackend : RendezvousBackend {
  void add(const OwnNode& node) override {
    ++adds;
    remove(node);
    nodes.push_back(node);
    if (open && static_cast<int>(nodes.size()) == max_nodes) complete();
  }
  void remove(const OwnNode& node) override {
    std::erase_if(nodes, [&](const OwnNode& one) { return one.local_id == node.local_id; });
  }
  void next_round() override {
    open = true;
    if (static_cast<int>(nodes.size()) >= max_nodes) complete();
  }
  void close() override { closed = true; }
  void finish(std::function<void()> done) override { finished = std::move(done); }

  void complete() {
    open = false;
    Rounds rounds;
    for (const OwnNode& node : nodes) {
      const int rank = static_cast<int>(rounds.size());
      if (rank == max_nodes) break;
      rounds.emplace_back(node, Round{.machine_rank = rank,
                                      .num_machines = max_nodes,
                                      .first_rank = rank * node.local_world_size,
                                      .master_port = nodes.front().store_port});
    }
    events.on_round(rounds);
  }

  int max_nodes = 2;
  bool open = true;
  bool closed = false;
  int adds = 0;
  std::vector<OwnNode> nodes = {};
  std::function<void()> finished = {};
  Events events = {};
};

struct Job {
  explicit Job(int nodes, int min_nodes = 0, int max_restarts = 0) {
    backend.max_nodes = nodes;
    options.plan.min_nodes = min_nodes == 0 ? nodes : min_nodes;
    options.plan.max_nodes = nodes;
    options.plan.backend = RendezvousKind::c10d;
    options.max_restarts = max_restarts;
    restart_coordinator();
  }

  void restart_coordinator() {
    coordinator.emplace(
        backend, [this](int node, const NodeMessage& message) { sent[node].push_back(message); }, options);
    backend.events = coordinator->backend_events();
  }

  void arrive(int id) {
    coordinator->on_hello(
        id, {.host = "node" + std::to_string(id), .addr = "10.0.0.1", .pid = 100 + id, .node_rank = id});
    join(id);
  }
  // Node `number` connects as `id`, with its history.
  void come_back(int id, int number, const NodeHistory& history) {
    coordinator->on_hello(id,
                          {.host = "node" + std::to_string(number),
                           .addr = "10.0.0.1",
                           .pid = 100 + number,
                           .node_rank = number,
                           .node_port = static_cast<std::uint16_t>(5000 + number)},
                          history);
    join(id);
  }
  void join(int id) { coordinator->on_message(id, Join{static_cast<std::uint16_t>(4000 + id)}); }

  template <typename Kind>
  std::vector<Kind> sent_to(int node) {
    std::vector<Kind> result;
    for (const NodeMessage& message : sent[node]) {
      if (const auto* content = std::get_if<Kind>(&message)) result.push_back(*content);
    }
    return result;
  }
  RoundOver last_end(int node) {
    const auto ends = sent_to<RoundEnds>(node);
    REQUIRE_FALSE(ends.empty());
    return ends.back().verdict;
  }

  FakeBackend backend;
  Coordinator::Options options;
  std::optional<Coordinator> coordinator;
  std::map<int, std::vector<NodeMessage>> sent;
};

}  // namespace

TEST_CASE("coordinator: a round begins for all when the backend is complete", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  CHECK(job.sent_to<RoundBegins>(0).empty());
  CHECK(job.coordinator->missing() == "1 of 2 nodes are here: node0 (10.0.0.1)");
  job.arrive(1);
  REQUIRE(job.sent_to<RoundBegins>(0).size() == 1);
  const RoundBegins begins = job.sent_to<RoundBegins>(1).at(0);
  CHECK(begins.number == 1);
  CHECK(begins.ready.round.machine_rank == 1);
  CHECK(begins.ready.round.master_port == 4000);
  CHECK(begins.ready.restarts == 0);
  REQUIRE(begins.successors.size() == 1);  // the coordinator itself is not a successor
  CHECK(begins.successors[0].host == "node1");
}

TEST_CASE("coordinator: a failure restarts all nodes together, once, when each has stopped its workers",
          "[rendezvous]") {
  Job job(2, 0, 3);
  job.arrive(0);
  job.arrive(1);
  job.coordinator->on_message(1, WorkerFailed{1, {.restart = true, .failure = "theirs"}});
  job.coordinator->on_message(0, WorkerFailed{1, {.restart = true, .failure = "a victim"}});
  CHECK(job.last_end(0) == RoundOver{.restart = true, .failure = "theirs"});
  CHECK(job.sent_to<RoundEnds>(0).size() == 1);
  CHECK(job.sent_to<RoundEnds>(1).size() == 1);
  job.join(1);
  CHECK(job.sent_to<RoundBegins>(1).size() == 1);  // node 0 still stops
  job.join(0);
  REQUIRE(job.sent_to<RoundBegins>(1).size() == 2);
  CHECK(job.sent_to<RoundBegins>(1)[1].ready.restarts == 1);
  CHECK(job.sent_to<RoundBegins>(1)[1].number == 2);
}

TEST_CASE("coordinator: restarts without progress end the job for all, whichever node fails",
          "[rendezvous]") {
  Job job(2, 0, 9);
  job.options.restarts_without_progress = 2;
  job.restart_coordinator();
  job.arrive(0);
  job.arrive(1);
  const auto fail = [&](int node, std::int64_t steps) {
    const int round = job.sent_to<RoundBegins>(node).back().number;
    job.coordinator->on_message(node, WorkerFailed{round,
                                                   {.restart = true,
                                                    .failure = "f",
                                                    .exit_code = 7,
                                                    .reached = {.is_known = true, .steps = steps}}});
    if (job.coordinator->is_over()) return;
    job.join(0);
    job.join(1);
  };
  fail(0, 3);
  fail(1, 3);
  fail(0, 4);
  fail(1, 2);
  CHECK_FALSE(job.coordinator->is_over());
  fail(1, 4);
  CHECK(job.coordinator->is_over());
  for (int id = 0; id < 2; ++id) {
    CHECK_FALSE(job.last_end(id).restart);
    CHECK(job.last_end(id).exit_code == 7);
    CHECK(job.last_end(id).reason.starts_with("not restarted: no rank got beyond step 4 in 2 restarts"));
  }
}

TEST_CASE("coordinator: one that replaces another goes on with its count of restarts without progress",
          "[rendezvous]") {
  const Stall stall = {.first = {.is_known = true, .steps = 3}, .restarts = 1};
  const bool is_successor = GENERATE(true, false);
  Job job(2, 0, 9);
  job.options.restarts_without_progress = 2;
  if (is_successor) {
    job.options.rounds = 4;
    job.options.stall = stall;
  }
  job.restart_coordinator();
  job.come_back(0, 0, is_successor ? NodeHistory{.round = 4} : NodeHistory{});
  job.come_back(1, 1, {.round = 4, .stall = stall});
  const RoundBegins begins = job.sent_to<RoundBegins>(1).back();
  CHECK(begins.number == 5);
  CHECK(begins.stall == stall);
  job.coordinator->on_message(
      1, WorkerFailed{5, {.restart = true, .failure = "f", .reached = {.is_known = true, .steps = 3}}});
  CHECK(job.last_end(0).reason.starts_with("not restarted: no rank got beyond step 3 in 2 restarts"));
}

TEST_CASE("coordinator: a failure without restarts ends the job for all, spares included", "[rendezvous]") {
  Job job(2);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  CHECK(job.sent_to<Waiting>(2).size() == 1);
  job.coordinator->on_message(0, WorkerFailed{1, {.failure = "f", .exit_code = 42}});
  for (int id = 0; id < 3; ++id) CHECK(job.last_end(id) == RoundOver{.failure = "f", .exit_code = 42});
  CHECK(job.backend.closed);
  CHECK(job.coordinator->is_over());
}

TEST_CASE("coordinator: all have succeeded", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.arrive(1);
  job.coordinator->on_message(0, WorkersDone{1});
  CHECK_FALSE(job.backend.finished);
  job.coordinator->on_message(1, WorkersDone{1});
  REQUIRE(job.backend.finished);
  CHECK(job.sent_to<JobEnds>(0).empty());
  job.backend.finished();
  CHECK(job.sent_to<JobEnds>(0).size() == 1);
  CHECK(job.sent_to<JobEnds>(1).size() == 1);
}

TEST_CASE("coordinator: a node that succeeded may leave", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.arrive(1);
  job.coordinator->on_message(1, WorkersDone{1});
  job.coordinator->on_lost(1, "eof", true);
  CHECK(job.sent_to<RoundEnds>(0).empty());
  CHECK(job.backend.nodes.size() == 2);  // without it the round would be over
  SECTION("and the job succeeds") {
    job.coordinator->on_message(0, WorkersDone{1});
    CHECK(job.backend.finished);
  }
  SECTION("but it is no part of the next round") {
    job.coordinator->on_message(0, WorkerFailed{1, {.restart = true, .failure = "f"}});
    CHECK(job.backend.nodes.size() == 1);
  }
}

TEST_CASE("coordinator: a lost node of a fixed group without restarts ends the job", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.arrive(1);
  job.coordinator->on_lost(1, "eof", true);
  CHECK(job.last_end(0) ==
        RoundOver{
            .text =
                "node node1 (10.0.0.1, pid 101) was lost: its connection closed; the job needs all its nodes",
            .exit_code = 75});
}

TEST_CASE("coordinator: a lost node of a fixed group is waited for while restarts are left", "[rendezvous]") {
  Job job(2, 0, 1);
  job.arrive(0);
  job.arrive(1);
  job.coordinator->on_lost(1, "eof", true);
  CHECK(job.last_end(0).restart);
  job.join(0);
  CHECK(job.sent_to<RoundBegins>(0).size() == 1);
  job.arrive(2);
  REQUIRE(job.sent_to<RoundBegins>(0).size() == 2);
  CHECK(job.sent_to<RoundBegins>(2).at(0).ready.restarts == 1);
}

TEST_CASE("coordinator: a range goes on with fewer nodes, which does not count as a restart",
          "[rendezvous]") {
  Job job(3, 1);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  job.coordinator->on_lost(2, "eof", true);
  CHECK(job.last_end(0).restart);
  job.backend.max_nodes = 2;
  job.join(0);
  job.join(1);
  REQUIRE(job.sent_to<RoundBegins>(1).size() == 2);
  CHECK(job.sent_to<RoundBegins>(1)[1].ready.restarts == 0);
}

TEST_CASE("coordinator: a spare takes the place of a lost node", "[rendezvous]") {
  Job job(2, 0, 1);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  job.coordinator->on_lost(1, "eof", true);
  job.join(0);
  REQUIRE(job.sent_to<RoundBegins>(2).size() == 1);
  CHECK(job.sent_to<RoundBegins>(0).size() == 2);
}

TEST_CASE("coordinator: a node that is lost while it stops does not block the others", "[rendezvous]") {
  Job job(3, 1, 5);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  job.coordinator->on_message(0, WorkerFailed{1, {.restart = true, .failure = "f"}});
  job.backend.max_nodes = 2;
  job.join(0);
  job.join(1);
  job.coordinator->on_lost(2, "eof", true);
  CHECK(job.sent_to<RoundBegins>(0).size() == 2);
}

TEST_CASE("coordinator: the smaller part of a partitioned network does not go on", "[rendezvous]") {
  Job job(3, 1);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  SECTION("the larger part does") {
    job.coordinator->on_lost(1, "silent for 3000 ms", false);
    CHECK(job.last_end(0).restart);
  }
  SECTION("alone of three") {
    job.coordinator->on_lost(1, "silent for 3000 ms", false);
    job.coordinator->on_lost(2, "silent for 3000 ms", false);
    job.join(0);
    // whoever else went silent while the nodes stopped counts too
    CHECK(job.sent_to<RoundBegins>(0).size() == 1);
    CHECK(job.coordinator->is_smaller_part());
    CHECK(job.coordinator->missing() ==
          "1 of 1 nodes are here: node0 (10.0.0.1); 2 are silent, and may be the larger part of a "
          "partitioned network");
  }
  SECTION("dead nodes are no part of it") {
    job.coordinator->on_lost(1, "eof", true);
    job.backend.max_nodes = 1;
    job.coordinator->on_lost(2, "eof", true);
    job.join(0);
    CHECK(job.sent_to<RoundBegins>(0).size() == 2);
  }
}

TEST_CASE("coordinator: a silent node that has succeeded is missed when all begin anew", "[rendezvous]") {
  Job job(3, 1);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  job.coordinator->on_message(2, WorkersDone{1});
  SECTION("and falls silent after the others") {
    job.coordinator->on_lost(1, "silent for 3000 ms", false);
    job.coordinator->on_lost(2, "silent for 3000 ms", false);
  }
  SECTION("and falls silent before the others") {
    job.coordinator->on_lost(2, "silent for 3000 ms", false);
    CHECK(job.sent_to<RoundEnds>(0).empty());
    job.coordinator->on_lost(1, "silent for 3000 ms", false);
  }
  job.join(0);
  CHECK(job.coordinator->is_smaller_part());
  CHECK(job.sent_to<RoundBegins>(0).size() == 1);
}

TEST_CASE("coordinator: a node that was cut off when it had succeeded waits for the others, and succeeds",
          "[rendezvous]") {
  Job job(2, 0, 1);
  job.options.plan.spares = 0;
  job.restart_coordinator();
  const NodeInfo info = {.host = "node1",
                         .addr = "10.0.0.1",
                         .pid = 101,
                         .node_rank = 1,
                         .node_port = 5001,
                         .seen_at = "10.0.0.9"};
  job.arrive(0);
  job.coordinator->on_hello(1, info);
  job.join(1);
  job.coordinator->on_message(1, WorkersDone{1});
  job.coordinator->on_lost(1, "silent for 3000 ms", false);
  CHECK(job.coordinator->is_full());
  REQUIRE(job.coordinator->is_address_of_node("10.0.0.9"));
  SECTION("it comes back") {
    job.coordinator->on_hello(2, info, {.round = 1});
    job.join(2);
    CHECK(job.sent_to<Waiting>(2).back().spare);
    job.coordinator->on_message(0, WorkersDone{1});
    job.backend.finished();
    CHECK(job.sent_to<JobEnds>(2).size() == 1);
  }
  SECTION("what it has done is void when another fails: it may come from anywhere") {
    job.coordinator->on_message(0, WorkerFailed{1, {.restart = true, .failure = "f"}});
    CHECK_FALSE(job.coordinator->is_full());
  }
}

TEST_CASE("coordinator: the larger part goes on when it has dropped the node that makes the others equal",
          "[rendezvous]") {
  Job job(3, 1);
  for (int id = 0; id < 3; ++id) job.come_back(id, id, {});
  for (int id = 1; id < 3; ++id) job.coordinator->on_lost(id, "silent for 3000 ms", false);
  CHECK(job.coordinator->is_smaller_part());
  const int dropped_round = GENERATE(1, 2);
  job.come_back(3, 2, {.dropped_round = dropped_round});
  CHECK(job.coordinator->is_smaller_part() == (dropped_round == 2));
}

TEST_CASE("coordinator: a node that another job has dropped says nothing of this one", "[rendezvous]") {
  Job job(3, 1);
  for (int id = 0; id < 3; ++id) job.come_back(id, id, {});
  job.come_back(3, 7, {.dropped_round = 9});
  job.coordinator->on_lost(1, "silent for 3000 ms", false);
  CHECK_FALSE(job.coordinator->is_smaller_part());
}

TEST_CASE("coordinator: success in a round that was ended is no success of a job that is stopped then",
          "[rendezvous]") {
  Job job(2, 0, 1);
  job.arrive(0);
  job.arrive(1);
  job.coordinator->on_message(1, WorkersDone{1});
  job.backend.events.on_change();
  job.coordinator->on_message(0, StopJob{.exit_code = 143});
  job.join(1);
  CHECK(job.sent_to<JobEnds>(1).empty());
  CHECK_FALSE(job.last_end(1).restart);
}

TEST_CASE("coordinator: a node that comes back when the job has succeeded is told so", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  const NodeInfo info = {
      .host = "node1", .addr = "10.0.0.1", .pid = 101, .node_port = 5001, .seen_at = "10.0.0.9"};
  job.coordinator->on_hello(1, info);
  job.join(1);
  job.coordinator->on_message(1, WorkersDone{1});
  job.coordinator->on_message(0, WorkersDone{1});
  job.coordinator->on_message(1, Leave{.reason = "the coordinator was silent", .superseded = true});
  CHECK(job.coordinator->is_address_of_node("10.0.0.9"));
  job.backend.finished();
  job.coordinator->on_hello(2, info, {.round = 1});
  job.join(2);
  CHECK(job.sent_to<JobEnds>(2).size() == 1);
  CHECK(job.sent_to<RoundEnds>(2).empty());
  job.arrive(3);  // a stranger
  CHECK(job.last_end(3).exit_code == 75);
}

TEST_CASE("coordinator: a node that has ended may have gone on with one that leaves later", "[rendezvous]") {
  Job job(3, 1, 1);
  for (int id = 0; id < 3; ++id) job.come_back(id, id, {});
  job.coordinator->on_lost(1, "its connection closed", true);
  CHECK_FALSE(job.coordinator->is_smaller_part());
  job.coordinator->on_message(2, Leave{.reason = "the coordinator was silent", .superseded = true});
  CHECK(job.coordinator->is_smaller_part());
  SECTION("the one that has left is back, and has asked the other") {
    job.come_back(3, 2, {.round = 1, .asked_port = 5001});
    CHECK_FALSE(job.coordinator->is_smaller_part());
  }
  SECTION("a new process may have been started for the one that has ended, if both are of one machine") {
    const bool is_of_machine = GENERATE(true, false);
    job.coordinator->on_hello(3, {.host = is_of_machine ? "node1" : "node2", .addr = "10.0.0.1", .pid = 300});
    job.join(3);
    CHECK(job.coordinator->is_smaller_part() == is_of_machine);
  }
}

TEST_CASE("coordinator: of two nodes of a machine, a new process is started for the one that has ended",
          "[rendezvous]") {
  Job job(3, 1, 1);
  const auto info = [](int number) {
    return NodeInfo{.host = "node",
                    .addr = "10.0.0.1",
                    .pid = 100 + number,
                    .node_port = static_cast<std::uint16_t>(5000 + number)};
  };
  job.come_back(0, 0, {});
  for (int id = 1; id < 3; ++id) {
    job.coordinator->on_hello(id, info(id));
    job.join(id);
  }
  job.coordinator->on_lost(1, "its connection closed", true);
  job.coordinator->on_lost(2, "silent for 3000 ms", false);
  job.coordinator->on_hello(3, info(3));
  job.join(3);
  CHECK(job.coordinator->is_smaller_part());
}

TEST_CASE("coordinator: one that has asked a node counts when that one is known to have ended",
          "[rendezvous]") {
  Job job(4, 1, 1);
  for (int id = 0; id < 4; ++id) job.come_back(id, id, {});
  for (int id = 1; id < 4; ++id)
    job.coordinator->on_message(id, Leave{.reason = "the coordinator was silent", .superseded = true});
  job.come_back(4, 2, {.round = 1, .asked_port = 5001});
  job.come_back(5, 3, {.round = 1, .asked_port = 5001});
  CHECK(job.coordinator->is_smaller_part());
  job.coordinator->on_ended({"10.0.0.1", 5001});
  CHECK_FALSE(job.coordinator->is_smaller_part());
}

TEST_CASE("coordinator: a node that has not entered a round counts with those that were absent when it began",
          "[rendezvous]") {
  Job job(4, 1, 2);
  const auto arrive = [&](int id) {
    job.coordinator->on_hello(id, {.host = "node" + std::to_string(id),
                                   .addr = "10.0.0.1",
                                   .pid = 100 + id,
                                   .node_port = static_cast<std::uint16_t>(5000 + id),
                                   .protocol = kProtocol});
    job.join(id);
  };
  for (int id = 0; id < 4; ++id) arrive(id);
  for (int id = 0; id < 4; ++id) job.coordinator->on_message(id, RoundEntered{1});
  job.backend.max_nodes = 2;
  for (const int id : {1, 2}) job.coordinator->on_lost(id, "silent for 3000 ms", false);
  for (const int id : {0, 3}) job.join(id);
  REQUIRE(job.sent_to<RoundBegins>(3).size() == 2);
  SECTION("it has entered it") {
    for (const int id : {0, 3}) job.coordinator->on_message(id, RoundEntered{2});
    job.coordinator->on_lost(3, "silent for 3000 ms", false);
    CHECK_FALSE(job.coordinator->is_smaller_part());
  }
  SECTION("it may not have heard of it") {
    for (const int id : {0, 3}) job.coordinator->on_message(id, RoundEntered{id == 0 ? 2 : 1});
    const bool is_back = GENERATE(true, false);
    // One of the nodes that were absent may have come back in the meantime.
    if (is_back) arrive(GENERATE(1, 2));
    job.coordinator->on_lost(3, "silent for 3000 ms", GENERATE(true, false));
    CHECK(job.coordinator->is_smaller_part());
  }
}

TEST_CASE(
    "coordinator: a coordinator that the others gave up stops its workers, and waits for them to come back",
    "[rendezvous]") {
  Job job(3, 1);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  job.coordinator->on_message(1, Leave{.reason = "the hub was silent", .superseded = true});
  job.coordinator->on_message(2, Leave{.reason = "the hub was silent", .superseded = true});
  CHECK(job.last_end(0).restart);
  CHECK_FALSE(job.coordinator->is_over());
  job.join(0);
  CHECK(job.sent_to<RoundBegins>(0).size() == 1);
  SECTION("one of two that were silent makes its part the larger one") {
    job.backend.max_nodes = 2;
    job.come_back(3, 1, {.round = 1});
    REQUIRE(job.sent_to<RoundBegins>(0).size() == 2);
    CHECK(job.sent_to<RoundBegins>(3).size() == 1);
  }
  SECTION("one that has stood up for another hub meanwhile does not") {
    job.come_back(3, 1, {.round = 1, .asked_port = 4711});
    CHECK(job.sent_to<RoundBegins>(0).size() == 1);
  }
  SECTION("nor does one that was in no round, but from the machine of one that was") {
    job.backend.max_nodes = 2;
    job.coordinator->on_hello(3, {.host = "node7", .addr = "10.0.0.7", .pid = 7, .node_port = 7});
    job.join(3);
    CHECK(job.sent_to<RoundBegins>(0).size() == 1);
    job.coordinator->on_hello(4, {.host = "node1", .addr = "10.0.0.1", .pid = 400, .node_port = 400});
    job.join(4);
    CHECK(job.sent_to<RoundBegins>(0).size() == 1);  // they may have gone on before one of them ended
    job.coordinator->on_hello(5, {.host = "node2", .addr = "10.0.0.1", .pid = 500, .node_port = 500});
    job.join(5);
    CHECK(job.sent_to<RoundBegins>(0).size() == 2);
  }
}

TEST_CASE("coordinator: a successor begins no round before the larger part of the last one is with it",
          "[rendezvous]") {
  Job job(3, 1);
  const NodeInfo absent = {.host = "node2", .addr = "10.0.0.1", .pid = 102, .node_port = 5002};
  job.options.rounds = 4;
  job.options.absent_nodes = {NodeInfo{}, absent};
  job.restart_coordinator();
  job.backend.max_nodes = 2;
  job.come_back(0, 1, {.round = 4});
  CHECK(job.sent_to<RoundBegins>(0).empty());
  job.come_back(1, 2, {.round = 4});
  REQUIRE(job.sent_to<RoundBegins>(0).size() == 1);
  CHECK(job.sent_to<RoundBegins>(1).at(0).number == 5);
}

TEST_CASE("coordinator: a successor waits for no node that has ended", "[rendezvous]") {
  Job job(3, 1);
  const NodeInfo old = {.host = "node0", .addr = "10.0.0.1", .pid = 100, .node_port = 5000};
  job.options.rounds = 4;
  job.options.absent_nodes = {old, NodeInfo{}};
  job.restart_coordinator();
  job.backend.max_nodes = 1;
  job.come_back(0, 1, {.round = 4});
  CHECK(job.coordinator->absent_nodes().addresses() ==
        std::vector<StoreAddress>{{"10.0.0.1", 5000}});  // as far as it is known
  job.coordinator->on_hello(1, {.addr = "10.0.0.1", .pid = 102, .node_port = 5002}, {.round = 4});
  job.coordinator->on_lost(1, "it has ended", true);
  CHECK(job.coordinator->is_smaller_part());
  job.coordinator->on_ended({"10.0.0.1", 5001});
  CHECK(job.coordinator->is_smaller_part());
  job.coordinator->on_ended({"10.0.0.1", 5000});
  CHECK_FALSE(job.coordinator->is_smaller_part());
  CHECK(job.sent_to<RoundBegins>(0).size() == 1);
}

TEST_CASE("coordinator: a successor waits for all that outlived the last coordinator, or were said to have",
          "[rendezvous]") {
  Job job(4, 2);
  job.options.rounds = 4;
  job.options.absent_nodes = {NodeInfo{}, NodeInfo{}};
  job.options.survivors = 2;
  job.restart_coordinator();
  job.backend.max_nodes = 3;
  job.come_back(0, 1, {.round = 4});
  job.come_back(1, 2, {.round = 4});
  CHECK(job.backend.nodes.empty());
  SECTION("all come") {
    job.come_back(2, 3, {.round = 4});
    CHECK(job.sent_to<RoundBegins>(2).size() == 1);
    CHECK(job.sent_to<RoundEnds>(0).empty());
  }
  SECTION("one does not") {
    job.backend.max_nodes = 2;
    job.coordinator->stop_expecting();
    CHECK(job.sent_to<RoundBegins>(0).size() == 1);
  }
}

TEST_CASE("coordinator: a restarted host continues with the round and restarts that the nodes know",
          "[rendezvous]") {
  Job job(2, 0, 3);
  job.arrive(0);
  job.come_back(1, 1, {.round = 6, .restarts = 1});
  REQUIRE(job.sent_to<RoundBegins>(1).size() == 1);
  CHECK(job.sent_to<RoundBegins>(1)[0].number == 7);
  CHECK(job.sent_to<RoundBegins>(1)[0].ready.restarts == 2);
}

TEST_CASE("coordinator: a node that connects anew is the same node", "[rendezvous]") {
  Job job(2, 0, 1);
  job.arrive(0);
  job.come_back(1, 1, {});
  job.come_back(2, 1, {.round = 1});
  CHECK(job.last_end(0).restart);
  CHECK(job.coordinator->nodes() == 2);
  job.join(0);
  CHECK(job.sent_to<RoundBegins>(2).size() == 1);
}

TEST_CASE("coordinator: a node whose machine has started it again takes the place of the silent one",
          "[rendezvous]") {
  Job job(2, 0, 1);
  job.options.plan.backend = RendezvousKind::static_;
  job.restart_coordinator();
  job.arrive(0);
  job.come_back(1, 1, {});
  job.coordinator->on_silence(1, {.duration = std::chrono::seconds(3), .timeout = std::chrono::seconds(15)});
  CHECK(job.sent_to<Waiting>(0).back().text ==
        "node node1 (10.0.0.1, pid 101) has been silent for 3 s; it counts as lost after 15 s");
  job.coordinator->on_hello(
      2, {.host = "node1", .addr = "10.0.0.1", .pid = 500, .node_rank = 1, .node_port = 500});
  job.join(2);
  job.join(0);
  CHECK(job.sent_to<RoundBegins>(2).size() == 1);
}

TEST_CASE("coordinator: a silent node stays when another comes from its machine", "[rendezvous]") {
  Job job(2, 0, 1);
  job.arrive(0);
  job.come_back(1, 1, {});
  job.coordinator->on_silence(1, {.duration = std::chrono::seconds(3), .timeout = std::chrono::seconds(15)});
  job.coordinator->on_hello(2, {.host = "node1", .addr = "10.0.0.1", .pid = 500, .node_port = 500});
  job.join(2);
  CHECK(job.sent_to<RoundEnds>(1).empty());
  CHECK(job.sent_to<Waiting>(2).back().spare);
}

TEST_CASE("coordinator: the node timeout is longer if a loss can only end the job", "[rendezvous]") {
  Job job(2, 0, 1);
  job.arrive(0);
  job.arrive(1);
  CHECK(job.coordinator->node_timeout() == std::chrono::seconds(15));
  CHECK(std::holds_alternative<Dropped>(job.coordinator->last_message("")));
  job.coordinator->on_message(1, WorkerFailed{1, {.restart = true, .failure = "f"}});
  job.join(0);
  job.join(1);
  CHECK(job.coordinator->node_timeout() == std::chrono::seconds(60));
  CHECK(std::holds_alternative<RoundEnds>(job.coordinator->last_message("")));
}

TEST_CASE("coordinator: the end of the host ends a job that needs it, and leaves the backend open",
          "[rendezvous]") {
  const Leave leave = {.reason = "it was asked to end by SIGTERM", .exit_code = 143};
  Job fixed(2);
  CHECK_FALSE(fixed.coordinator->end_without_host(leave));  // no round: the others go on waiting
  fixed.arrive(0);
  fixed.arrive(1);
  CHECK(fixed.coordinator->end_without_host(leave) ==
        RoundOver{.text = "the node that hosts the job has left: it was asked to end by SIGTERM; the job "
                          "needs all its nodes",
                  .exit_code = 143});
  CHECK_FALSE(fixed.backend.closed);
  Job range(2, 1);
  range.arrive(0);
  range.arrive(1);
  CHECK_FALSE(range.coordinator->end_without_host(leave));
}

TEST_CASE("coordinator: a signal to one node ends a job that needs it, with its exit code", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.arrive(1);
  job.coordinator->on_message(1, Leave{.reason = "it was asked to end by SIGTERM", .exit_code = 143});
  CHECK(job.last_end(0) ==
        RoundOver{.text = "node node1 (10.0.0.1, pid 101) has left: it was asked to end by SIGTERM; the job "
                          "needs all its nodes",
                  .exit_code = 143});
}

TEST_CASE("coordinator: a notice of the end reaches all other nodes that understand it", "[rendezvous]") {
  Job job(4);
  for (const int node : {0, 1, 2, 3}) {
    job.coordinator->on_hello(node, {.host = "node" + std::to_string(node),
                                     .addr = "10.0.0.1",
                                     .pid = 100 + node,
                                     .node_rank = node,
                                     .protocol = node == 3 ? 1 : kProtocol});
    job.join(node);
  }
  const EndNotice notice = {.signal = 10, .host = "node1"};
  job.coordinator->on_message(1, notice);
  job.coordinator->on_message(7, notice);  // not a node of the job
  for (const int node : {0, 2}) CHECK(job.sent_to<EndNotice>(node) == std::vector<EndNotice>{notice});
  for (const int node : {1, 3}) CHECK(job.sent_to<EndNotice>(node).empty());
}

TEST_CASE("coordinator: its own node is told how far the ranks of the others are", "[rendezvous]") {
  Job job(2, 0, 1);
  const NodeProgress progress = {.round = 1, .ranks = {{3, {.steps = 812}}}};
  job.arrive(0);
  job.coordinator->on_message(1, progress);  // before it is a node of the job
  job.arrive(1);
  job.coordinator->on_message(1, progress);
  REQUIRE(job.sent_to<NodeProgress>(0).size() == 1);
  const NodeProgress message = job.sent_to<NodeProgress>(0)[0];
  CHECK(message.ranks == progress.ranks);
  CHECK(message.node == 1);
  CHECK(message.host == "node1");
  job.coordinator->on_message(1, NodeProgress{.round = 7});
  job.coordinator->on_message(1, WorkerFailed{1, {.restart = true}});
  job.coordinator->on_message(1, progress);  // the round is over
  CHECK(job.sent_to<NodeProgress>(0).size() == 1);
}

TEST_CASE("coordinator: which ranks are slow its own node tells all others that understand it",
          "[rendezvous]") {
  Job job(4);
  for (const int node : {0, 1, 2, 3}) {
    job.coordinator->on_hello(node, {.host = "node" + std::to_string(node),
                                     .addr = "10.0.0.1",
                                     .pid = 100 + node,
                                     .node_rank = node,
                                     .protocol = node == 3 ? kProtocolOfEndNotice : kProtocol});
    job.join(node);
  }
  const SlowRanks slow = {.round = 1, .ranks = {{5, acc::Section::data}}};
  job.coordinator->on_message(0, slow);
  job.coordinator->on_message(1, SlowRanks{.round = 1});
  for (const int node : {1, 2}) CHECK(job.sent_to<SlowRanks>(node) == std::vector<SlowRanks>{slow});
  for (const int node : {0, 3}) CHECK(job.sent_to<SlowRanks>(node).empty());
}

TEST_CASE("coordinator: all nodes whose workers run hear that the job hangs", "[rendezvous]") {
  Job job(3);
  for (const int node : {0, 1, 2}) {
    job.coordinator->on_hello(node, {.host = "node" + std::to_string(node),
                                     .addr = "10.0.0.1",
                                     .pid = 100 + node,
                                     .node_rank = node,
                                     .protocol = kProtocol});
    job.join(node);
  }
  const auto say = [&](int node, const NodeHang& hang) { job.coordinator->on_message(node, hang); };
  for (const int node : {0, 1, 2}) say(node, {.round = 7, .stage = NodeHangStage::idle});
  say(0, {.round = 1, .stage = NodeHangStage::idle});
  say(1, {.round = 1, .stage = NodeHangStage::idle});
  CHECK(job.sent_to<JobHang>(0).empty());
  job.coordinator->on_message(2, WorkersDone{1});
  const JobHang suspected = {.round = 1, .stage = JobHangStage::suspected, .number = 1};
  for (const int node : {0, 1}) CHECK(job.sent_to<JobHang>(node) == std::vector{suspected});
  CHECK(job.sent_to<JobHang>(2).empty());
}

TEST_CASE("coordinator: with a node of an older acc nobody knows whether the job hangs", "[rendezvous]") {
  Job job(2);
  for (const int node : {0, 1}) {
    job.coordinator->on_hello(node, {.host = "node" + std::to_string(node),
                                     .addr = "10.0.0.1",
                                     .pid = 100 + node,
                                     .node_rank = node,
                                     .protocol = node == 1 ? kProtocolOfEntry : kProtocol});
    job.join(node);
  }
  job.coordinator->on_message(0, NodeHang{.round = 1, .stage = NodeHangStage::idle});
  CHECK(job.sent_to<JobHang>(0) == std::vector{JobHang{.round = 1, .stage = JobHangStage::unknown}});
  CHECK(job.sent_to<JobHang>(1).empty());
}

namespace {

// Three nodes in a round; the last one runs an acc that reports nothing.
void arrive_with_older(Job& job) {
  for (const int node : {0, 1, 2, 3}) {
    job.coordinator->on_hello(node, {.host = "node" + std::to_string(node),
                                     .addr = "10.0.0.1",
                                     .pid = 100 + node,
                                     .node_rank = node,
                                     .workers = 2,
                                     .protocol = node == 3 ? kProtocolOfProgress : kProtocol});
    job.join(node);
  }
}

}  // namespace

TEST_CASE("coordinator: a node that looks learns who the others are, and gets their next reports",
          "[rendezvous]") {
  Job job(4);
  arrive_with_older(job);
  job.coordinator->on_message(1, RanksWanted{1});
  const Peers peers = {1,
                       {{.node_rank = 0, .host = "node0", .workers = 2, .first_rank = 0, .reports = true},
                        {.node_rank = 2, .host = "node2", .workers = 2, .first_rank = 4, .reports = true},
                        {.node_rank = 3, .host = "node3", .workers = 2, .first_rank = 6}}};
  CHECK(job.sent_to<Peers>(1) == std::vector<Peers>{peers});
  for (const int node : {0, 2}) CHECK(job.sent_to<RanksWanted>(node) == std::vector{RanksWanted{1}});
  for (const int node : {1, 3}) CHECK(job.sent_to<RanksWanted>(node).empty());
  const RankReport report = {.round = 1, .node_rank = 2, .ranks = "[]"};
  job.coordinator->on_message(2, RankReport{.round = 1, .node_rank = 7, .ranks = "[]"});
  CHECK(job.sent_to<RankReport>(1) == std::vector{report});
  job.coordinator->on_message(2, report);  // nobody waits for it
  CHECK(job.sent_to<RankReport>(1).size() == 1);
  CHECK(job.sent_to<RankReport>(0).empty());
}

TEST_CASE("coordinator: a node is asked once until it has reported, however many look", "[rendezvous]") {
  Job job(4);
  arrive_with_older(job);
  for (int i = 0; i < 3; ++i) {
    job.coordinator->on_message(0, RanksWanted{1});
    job.coordinator->on_message(1, RanksWanted{1});
  }
  CHECK(job.sent_to<RanksWanted>(2).size() == 1);
  job.coordinator->on_message(2, RankReport{.round = 1, .ranks = "[]"});
  for (const int viewer : {0, 1}) CHECK(job.sent_to<RankReport>(viewer).size() == 1);
  job.coordinator->on_message(1, RanksWanted{1});
  CHECK(job.sent_to<RanksWanted>(2).size() == 2);
}

TEST_CASE("coordinator: of a report that is too long only its node is told", "[rendezvous]") {
  Job job(4);
  arrive_with_older(job);
  job.coordinator->on_message(1, RanksWanted{1});
  job.coordinator->on_message(2, RankReport{.round = 1, .ranks = std::string(max_report_bytes(2) + 1, 'x')});
  CHECK(job.sent_to<RankReport>(1) == std::vector{RankReport{.round = 1, .node_rank = 2}});
}

TEST_CASE("coordinator: reports of another round, and to viewers that were lost, go nowhere",
          "[rendezvous]") {
  Job job(4);
  arrive_with_older(job);
  job.coordinator->on_message(1, RanksWanted{7});
  CHECK(job.sent_to<Peers>(1).empty());
  job.coordinator->on_message(1, RanksWanted{1});
  job.coordinator->on_message(2, RankReport{.round = 7, .ranks = "[]"});
  CHECK(job.sent_to<RankReport>(1).empty());
  job.coordinator->on_lost(1, "", true);
  job.coordinator->on_message(2, RankReport{.round = 1, .ranks = "[]"});
  CHECK(job.sent_to<RankReport>(1).empty());
}

TEST_CASE("coordinator: a node that leaves counts as lost", "[rendezvous]") {
  Job job(2, 1);
  job.arrive(0);
  job.arrive(1);
  job.coordinator->on_message(1, Leave{.reason = "it was asked to end by SIGTERM"});
  CHECK(job.last_end(0).restart);
  CHECK(job.last_end(0).text == "node node1 (10.0.0.1, pid 101) has left: it was asked to end by SIGTERM");
}

TEST_CASE("coordinator: any node of the job can stop all of it, a spare cannot", "[rendezvous]") {
  Job job(2, 1, 3);
  for (const int node : {0, 1, 2}) job.arrive(node);
  job.coordinator->on_message(2, StopJob{143});
  CHECK(job.sent_to<RoundEnds>(0).empty());
  job.coordinator->on_message(1, StopJob{143});
  for (const int node : {0, 1, 2}) CHECK_FALSE(job.last_end(node).restart);
  CHECK(job.last_end(0).exit_code == 143);
  CHECK(job.last_end(0).text == "node node1 (10.0.0.1, pid 101) was asked to stop the job");
}

TEST_CASE("coordinator: whoever has only connected does not speak for the job", "[rendezvous]") {
  Job job(3, 1, 3);
  job.backend.max_nodes = 2;
  const auto stranger_speaks = [&] {
    const std::size_t ends = job.sent_to<RoundEnds>(0).size();
    job.coordinator->on_message(2, StopJob{143});
    job.coordinator->on_message(2, EndNotice{.signal = SIGUSR1, .host = "x"});
    return job.sent_to<RoundEnds>(0).size() > ends || !job.sent_to<EndNotice>(0).empty();
  };
  job.coordinator->on_hello(0, {.host = "node0", .protocol = kProtocol});
  job.coordinator->on_hello(1, {.host = "node1", .addr = "10.0.0.1", .protocol = kProtocol});
  SECTION("before the first round") {
    job.coordinator->on_hello(2, {.host = "stranger", .addr = "10.0.0.9", .protocol = kProtocol});
    CHECK_FALSE(stranger_speaks());
  }
  SECTION("while a round runs") {
    job.join(0);
    job.join(1);
    job.coordinator->on_hello(2, {.host = "stranger", .addr = "10.0.0.9", .protocol = kProtocol});
    CHECK_FALSE(stranger_speaks());
    job.coordinator->on_message(2, WorkersDone{1});
    CHECK_FALSE(job.backend.finished);
  }
  SECTION("between rounds") {
    job.join(0);
    job.join(1);
    job.coordinator->on_message(1, WorkerFailed{1, {.restart = true, .failure = "f"}});
    job.coordinator->on_hello(2, {.host = "stranger", .addr = "10.0.0.9", .protocol = kProtocol});
    CHECK_FALSE(stranger_speaks());
  }
  CHECK_FALSE(job.coordinator->is_over());
}

TEST_CASE("coordinator: a node of the job speaks for it before, in and between rounds", "[rendezvous]") {
  Job job(2, 1, 3);
  for (const int node : {0, 1})
    job.coordinator->on_hello(
        node,
        {.host = "node" + std::to_string(node), .addr = "10.0.0.1", .pid = node, .protocol = kProtocol});
  const int speaker = GENERATE(0, 1);
  SECTION("before the first round, when it has joined") {
    job.join(speaker);
  }
  SECTION("in a round") {
    job.join(0);
    job.join(1);
  }
  SECTION("while the workers stop") {
    job.join(0);
    job.join(1);
    job.coordinator->on_message(1, WorkerFailed{1, {.restart = true, .failure = "f"}});
  }
  SECTION("when its workers have stopped, and those of others have not") {
    job.join(0);
    job.join(1);
    job.coordinator->on_message(1, WorkerFailed{1, {.restart = true, .failure = "f"}});
    job.join(speaker);
  }
  job.coordinator->on_message(speaker, EndNotice{.signal = SIGUSR2, .host = "x"});
  CHECK(job.sent_to<EndNotice>(1 - speaker).size() == 1);
  job.coordinator->on_message(speaker, StopJob{143});
  CHECK(job.coordinator->is_over());
  CHECK(job.last_end(1 - speaker).exit_code == 143);
}

TEST_CASE("coordinator: a node that has lost its coordinator speaks for the job as soon as it is known again",
          "[rendezvous]") {
  Job job(2, 1, 3);
  job.options.rounds = 4;
  job.restart_coordinator();
  job.coordinator->on_hello(0, {.host = "node0", .node_port = 5000}, {.round = 4});
  job.coordinator->on_hello(1, {.host = "node1", .node_port = 5001, .seen_at = "10.0.0.2"}, {.round = 4});
  job.coordinator->on_message(1, StopJob{143});  // its workers stop, and it has not joined yet
  CHECK(job.coordinator->is_over());
}

TEST_CASE("coordinator: what no acc sends is not passed on", "[rendezvous]") {
  Job job(2, 1, 3);
  for (const int node : {0, 1}) {
    job.coordinator->on_hello(node, {.host = "node" + std::to_string(node),
                                     .addr = "10.0.0.1",
                                     .pid = node,
                                     .node_rank = node,
                                     .protocol = kProtocol});
    job.join(node);
  }
  for (const int signal : {0, -5, SIGTERM, SIGKILL, 1'000'000})
    job.coordinator->on_message(1, EndNotice{.signal = signal, .host = "node1"});
  CHECK(job.sent_to<EndNotice>(0).empty());
  for (const int code : {0, 1, 75, 128, 128 + NSIG, -1}) job.coordinator->on_message(1, StopJob{code});
  CHECK_FALSE(job.coordinator->is_over());
}

TEST_CASE("coordinator: a history that no node can have is none", "[rendezvous]") {
  constexpr int kMax = std::numeric_limits<int>::max();
  const NodeHistory history =
      GENERATE(NodeHistory{.round = kMax}, NodeHistory{.restarts = kMax}, NodeHistory{.dropped_round = kMax},
               NodeHistory{.round = -1}, NodeHistory{.round = 1, .stall = {.restarts = kMax}});
  Job job(2, 0, 3);
  job.come_back(0, 0, {});
  job.come_back(1, 1, history);
  const RoundBegins begins = job.sent_to<RoundBegins>(1).back();
  CHECK(begins.number == 1);
  CHECK(begins.ready.restarts == 0);
  CHECK(begins.stall == Stall{});
}

TEST_CASE("coordinator: a static rank is given once", "[rendezvous]") {
  Job job(3);
  job.options.plan.backend = RendezvousKind::static_;
  job.coordinator.emplace(
      job.backend, [&](int node, const NodeMessage& message) { job.sent[node].push_back(message); },
      job.options);
  job.coordinator->on_hello(1, {.host = "a", .addr = "10.0.0.1", .pid = 1, .node_rank = 1});
  job.coordinator->on_hello(2, {.host = "b", .addr = "10.0.0.2", .pid = 2, .node_rank = 1});
  CHECK(job.last_end(2).exit_code == 2);
  CHECK(job.last_end(2).text ==
        "node rank 1 is taken by node a (10.0.0.1, pid 1); give this node another --node-rank");
  CHECK(job.coordinator->nodes() == 1);
}

TEST_CASE("coordinator: a rank may be that of an ended process of the machine that asks for it",
          "[rendezvous]") {
  Job job(3);
  job.options.plan.backend = RendezvousKind::static_;
  job.restart_coordinator();
  for (int id = 0; id < 2; ++id) job.arrive(id);
  NodeInfo next = {.host = "node1", .addr = "10.0.0.1", .pid = 500, .node_rank = 1, .node_port = 500};
  CHECK(job.coordinator->unproven_holder(next) == 1);
  SECTION("not if it is known to be silent, and gives the rank up at once") {
    job.coordinator->on_silence(1,
                                {.duration = std::chrono::seconds(3), .timeout = std::chrono::seconds(15)});
  }
  SECTION("not on another machine") {
    next.host = "node7";
  }
  SECTION("not if nobody has it") {
    next.node_rank = 2;
  }
  SECTION("not if it is this node's own") {
    next.host = "node0";
    next.node_rank = 0;
  }
  CHECK_FALSE(job.coordinator->unproven_holder(next));
}

TEST_CASE("coordinator: where spares are limited, a node may replace an ended process", "[rendezvous]") {
  Job job(3);
  job.options.plan.spares = 0;
  job.restart_coordinator();
  const NodeInfo next = {.host = "node1", .addr = "10.0.0.1", .pid = 500, .node_port = 500};
  for (int id = 0; id < 2; ++id) job.arrive(id);
  CHECK_FALSE(job.coordinator->unproven_holder(next));  // there is room
  const NodeInfo neighbour = {.host = "node1", .addr = "10.0.0.1", .pid = 102, .node_port = 102};
  job.coordinator->on_hello(2, neighbour);
  job.join(2);
  CHECK(job.coordinator->unproven_holder(next) == 1);
  CHECK(job.coordinator->unproven_holder(next, 1) == 2);
  CHECK_FALSE(job.coordinator->unproven_holder(next, 2));
  CHECK_FALSE(job.coordinator->unproven_holder(neighbour));  // it connects anew
  CHECK_FALSE(job.coordinator->unproven_holder({.host = "node7", .addr = "10.0.0.1", .pid = 500}));
  // Another on its machine may have come, so it is not given up for being silent.
  job.coordinator->on_silence(1, {.duration = std::chrono::seconds(3), .timeout = std::chrono::seconds(15)});
  CHECK(job.coordinator->unproven_holder(next) == 1);
}

TEST_CASE("coordinator: a change in the backend ends the round", "[rendezvous]") {
  Job job(2, 1);
  job.arrive(0);
  job.arrive(1);
  job.backend.events.on_change();
  CHECK(job.last_end(0).restart);
}

TEST_CASE("coordinator: too few nodes in time end the job", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.coordinator->give_up("waited 600 s");
  CHECK(job.last_end(0) == RoundOver{.text = "waited 600 s", .exit_code = 75});
  job.coordinator->on_hello(1, {});
  job.join(1);
  CHECK(job.last_end(1).text == "the job is over");
}

TEST_CASE("coordinator: group rank 0 receives the addresses of its clients", "[rendezvous]") {
  Job job(2);
  job.coordinator->on_hello(0, {.host = "node0", .addresses = {"10.0.0.1", "10.1.0.1"}});
  job.join(0);
  job.coordinator->on_hello(1, {.host = "node1", .addresses = {"10.0.0.2"}, .seen_at = "10.0.0.2"});
  job.join(1);
  const std::vector<std::string> addresses = {"10.0.0.1", "10.1.0.1", "10.0.0.2"};
  CHECK(job.coordinator->addresses_of_round() == addresses);
  CHECK(job.sent_to<RoundBegins>(0).at(0).clients == addresses);
  CHECK(job.sent_to<RoundBegins>(1).at(0).clients.empty());
  CHECK(job.sent_to<RoundBegins>(0).at(0).successors.at(0).addresses.empty());
}

TEST_CASE("coordinator: a node that has got another address is known by it from the next round on",
          "[rendezvous]") {
  Job job(2, 0, 3);
  job.coordinator->on_hello(0, {.host = "node0", .addresses = {"10.0.0.1"}});
  job.join(0);
  job.coordinator->on_hello(1, {.host = "node1", .addresses = {"10.0.0.2"}, .seen_at = "10.0.0.2"});
  job.join(1);
  job.coordinator->on_message(0, WorkerFailed{1, {.restart = true, .failure = "f"}});
  job.join(0);  // one of an older acc does not say
  job.coordinator->on_message(1, Join{.store_port = 4001, .addresses = {"10.0.0.2", "10.0.0.9"}});
  REQUIRE(job.sent_to<RoundBegins>(0).size() == 2);
  CHECK(job.sent_to<RoundBegins>(0).at(1).clients ==
        std::vector<std::string>{"10.0.0.1", "10.0.0.2", "10.0.0.9"});
}

TEST_CASE("coordinator: what is no numeric address reaches no store", "[rendezvous]") {
  Job job(2, 0, 3);
  job.coordinator->on_hello(0, {.host = "node0", .addresses = {"10.0.0.1"}});
  job.join(0);
  job.coordinator->on_hello(1, {.host = "node1", .addresses = {"10.0.0.2", "x"}, .seen_at = "10.0.0.2"});
  job.coordinator->on_message(1, Join{.store_port = 4001, .addresses = {"", "10.0.0.2", "10.0.0.x"}});
  CHECK(job.sent_to<RoundBegins>(0).at(0).clients == std::vector<std::string>{"10.0.0.1", "10.0.0.2"});
}

TEST_CASE("coordinator: behind a NAT no addresses are sent", "[rendezvous]") {
  Job job(2);
  job.coordinator->on_hello(0, {.host = "node0", .addresses = {"10.0.0.1"}});
  job.join(0);
  job.coordinator->on_hello(1, {.host = "node1", .addresses = {"10.0.0.2"}, .seen_at = "192.168.0.1"});
  job.join(1);
  CHECK(job.coordinator->addresses_of_round().empty());
}

TEST_CASE("coordinator: where a node's addresses are not known no addresses are sent", "[rendezvous]") {
  const bool is_first = GENERATE(false, true);
  std::vector<std::string> first_addresses = {"10.0.0.1"};
  std::vector<std::string> second_addresses = {"10.0.0.2"};
  (is_first ? first_addresses : second_addresses).clear();
  Job job(2);
  job.coordinator->on_hello(0, {.host = "node0", .addresses = first_addresses});
  job.join(0);
  job.coordinator->on_hello(1, {.host = "node1", .addresses = second_addresses, .seen_at = "10.0.0.2"});
  job.join(1);
  CHECK(job.coordinator->addresses_of_round().empty());
  CHECK(job.sent_to<RoundBegins>(0).at(0).clients.empty());
  CHECK(job.sent_to<RoundBegins>(0).at(0).addresses.empty());
}

TEST_CASE("coordinator: a round of nodes with long lists of addresses is a message that nodes take",
          "[rendezvous]") {
  constexpr int kNodes = 1500;
  const std::vector<std::string> addresses(64, "2001:db8:1234:5678:9abc:def0:1234:5678");
  Job job(kNodes);
  for (int id = 0; id < kNodes; ++id) {
    job.coordinator->on_hello(id, {.host = "node", .addresses = addresses, .seen_at = addresses.front()});
    job.join(id);
  }
  CHECK(encode(job.sent_to<RoundBegins>(0).at(0)).size() < NodeConnection::kMaxMessage);
}

TEST_CASE("coordinator: a node outside of the round cannot end it", "[rendezvous]") {
  Job job(2, 0, 3);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  job.coordinator->on_message(2, WorkerFailed{1, {.restart = true, .failure = "f"}});
  job.coordinator->on_message(2, Leave{"it says so"});
  CHECK(job.sent_to<RoundEnds>(0).empty());
  CHECK(job.sent_to<RoundEnds>(1).empty());
}

TEST_CASE("coordinator: a job is full when all its nodes are in a round, until one of them is lost",
          "[rendezvous]") {
  Job job(2, 1, 3);
  job.arrive(0);
  CHECK_FALSE(job.coordinator->is_full());
  job.arrive(1);
  CHECK(job.coordinator->is_full());
  // The same nodes meet again.
  job.coordinator->on_message(1, WorkerFailed{1, {.restart = true, .failure = "f"}});
  CHECK(job.coordinator->is_full());
  job.join(0);
  job.join(1);
  CHECK(job.coordinator->is_full());
  job.coordinator->on_lost(1, "silent", true);
  CHECK_FALSE(job.coordinator->is_full());
}

TEST_CASE("coordinator: the nodes of a full job are known by their addresses", "[rendezvous]") {
  Job job(2);
  job.coordinator->on_hello(0, {.host = "node0", .addr = "node0", .addresses = {"10.0.0.9"}});
  job.join(0);
  job.coordinator->on_hello(1, {.host = "node1",
                                .addr = "node1",
                                .node_rank = 1,
                                .addresses = {"10.0.0.1", "10.1.0.1"},
                                .seen_at = "10.0.0.1"});
  job.join(1);
  CHECK(job.coordinator->is_address_of_node("10.0.0.1"));
  CHECK_FALSE(job.coordinator->is_address_of_node("10.1.0.1"));  // its own claim, not the observed address
  CHECK(job.sent_to<RoundBegins>(1).at(0).addresses ==
        std::vector<std::string>{"10.0.0.9", "10.0.0.1", "10.1.0.1"});
}

TEST_CASE("coordinator: a surplus node waits as a spare", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.arrive(1);
  CHECK_FALSE(job.coordinator->surplus());
}

TEST_CASE("coordinator: a node is a spare while a round runs without it", "[rendezvous]") {
  Job job(2, 0, 1);
  for (const int id : {0, 1, 2}) job.arrive(id);
  CHECK(job.sent_to<Waiting>(2).back().spare);
  job.coordinator->on_silence(1, {.duration = std::chrono::seconds(3), .timeout = std::chrono::seconds(15)});
  CHECK_FALSE(job.sent_to<Waiting>(0).back().spare);  // a message to the user alone
  job.coordinator->on_message(1, WorkerFailed{1, {.restart = true}});
  job.join(0);
  CHECK(job.sent_to<RoundBegins>(2).empty());
  job.backend.events.on_missing("1 of at least 2 nodes here", false);
  CHECK_FALSE(job.sent_to<Waiting>(2).back().spare);

  // Where another launcher's nodes meet too, the coordinator's own node can be without a place.
  Job crowded(2);
  crowded.arrive(0);
  crowded.backend.events.on_missing("the job has its 2 nodes; waiting as a spare", true);
  CHECK(crowded.sent_to<Waiting>(0).back().spare);
  crowded.coordinator->on_silence(0,
                                  {.duration = std::chrono::seconds(3), .timeout = std::chrono::seconds(15)});
  CHECK(crowded.sent_to<Waiting>(0).back().spare);
  crowded.backend.events.on_missing("waiting for 1 node to end the round before", false);
  CHECK_FALSE(crowded.sent_to<Waiting>(0).back().spare);
}

TEST_CASE("coordinator: a surplus node ends if there are no places for spares", "[rendezvous]") {
  Job job(2);
  job.options.plan.spares = 0;
  job.coordinator.emplace(
      job.backend, [&](int node, const NodeMessage& message) { job.sent[node].push_back(message); },
      job.options);
  job.backend.events = job.coordinator->backend_events();
  job.arrive(0);
  job.arrive(1);
  REQUIRE(job.coordinator->surplus());
  CHECK(job.coordinator->surplus()->text == "all places of the job are taken, and those of its spares");
}

namespace {

// What a job of so many nodes costs that meets, loses one, and meets again with another in its place.
struct Cost {
  int adds = 0;
  int messages = 0;
  std::size_t bytes = 0;
};

Cost cost_of(int nodes) {
  Job job(nodes, 0, 1);
  const auto arrive = [&](int id) {
    const std::string address =
        "10.0." + std::to_string(100 + id / 200) + "." + std::to_string(20 + id % 200);
    job.coordinator->on_hello(id, {.host = "node" + std::to_string(100 + id),
                                   .addr = address,
                                   .pid = 1000 + id,
                                   .node_port = static_cast<std::uint16_t>(20000 + id),
                                   .addresses = {address},
                                   .seen_at = id == 0 ? "" : address});
    job.join(id);
  };
  for (int id = 0; id < nodes; ++id) arrive(id);
  job.coordinator->on_lost(nodes / 2, "", true);
  for (int id = 0; id < nodes; ++id) {
    if (id != nodes / 2) job.join(id);
  }
  arrive(nodes);
  REQUIRE(job.sent_to<RoundBegins>(nodes).size() == 1);
  Cost cost = {.adds = job.backend.adds};
  for (const auto& [id, messages] : job.sent) {
    cost.messages += static_cast<int>(messages.size());
    for (const NodeMessage& message : messages) cost.bytes += encode(message).size();
  }
  return cost;
}

}  // namespace

TEST_CASE("coordinator: what it sends and tells the backend grows linearly with the nodes", "[rendezvous]") {
  const Cost small = cost_of(50);
  const Cost large = cost_of(100);
  // Of each node once for each time it asked for a round.
  CHECK(small.adds == 100);
  CHECK(large.adds == 200);
  // The begin of a round, its end, the begin of the next; of the lost node and the one in its place, half.
  CHECK(small.messages == 3 * 49 + 2);
  CHECK(large.messages == 3 * 99 + 2);
  // Nine nodes, wherever there are more, are told the addresses of all.
  CHECK(static_cast<double>(large.bytes) / 100 < 1.03 * static_cast<double>(small.bytes) / 50);
}

}  // namespace coordinator_test
