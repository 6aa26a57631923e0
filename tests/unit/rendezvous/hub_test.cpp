// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/hub.hpp"

#include <algorithm>
#include <map>

#include "support/catch.hpp"

using namespace acc;
using namespace acc::launcher;

namespace {

// A board on which nodes of ours alone meet: complete with `most` of them, or when the test says so.
struct FakeBoard : Board {
  void add(const OwnNode& node) override {
    remove(node);
    nodes.push_back(node);
    if (open && static_cast<int>(nodes.size()) == most) complete();
  }
  void remove(const OwnNode& node) override {
    std::erase_if(nodes, [&](const OwnNode& one) { return one.local_id == node.local_id; });
  }
  void next_round() override {
    open = true;
    if (static_cast<int>(nodes.size()) >= most) complete();
  }
  void close() override { closed = true; }
  void finish(std::function<void()> done) override { finished = std::move(done); }

  void complete() {
    open = false;
    Rounds places;
    for (const OwnNode& node : nodes) {
      const int rank = static_cast<int>(places.size());
      if (rank == most) break;
      places.emplace_back(
          node, Round{.machine_rank = rank, .num_machines = most, .master_port = nodes.front().store_port});
    }
    events.on_round(places);
  }

  int most = 2;
  bool open = true;
  bool closed = false;
  std::vector<OwnNode> nodes = {};
  std::function<void()> finished = {};
  Events events = {};
};

struct Job {
  explicit Job(int nodes, int least = 0, int max_restarts = 0) {
    board.most = nodes;
    options.plan.least_nodes = least == 0 ? nodes : least;
    options.plan.most_nodes = nodes;
    options.plan.backend = RendezvousBackend::c10d;
    options.max_restarts = max_restarts;
    restart_hub();
  }

  void restart_hub() {
    hub.emplace(
        board, [this](int node, const NodeMessage& message) { sent[node].push_back(message); }, options);
    board.events = hub->board_events();
  }

  void arrive(int id) {
    hub->hello(id,
               {.host = "node" + std::to_string(id), .addr = "10.0.0.1", .pid = 100 + id, .node_rank = id});
    join(id);
  }
  // Node `number` links as `id`, and knows what it was part of.
  void come_back(int id, int number, const NodeHistory& history) {
    hub->hello(id,
               {.host = "node" + std::to_string(number),
                .addr = "10.0.0.1",
                .pid = 100 + number,
                .node_rank = number,
                .link_port = static_cast<std::uint16_t>(5000 + number)},
               history);
    join(id);
  }
  void join(int id) { hub->take(id, Join{static_cast<std::uint16_t>(4000 + id)}); }

  template <typename Kind>
  std::vector<Kind> told(int node) {
    std::vector<Kind> found;
    for (const NodeMessage& message : sent[node]) {
      if (const auto* one = std::get_if<Kind>(&message)) found.push_back(*one);
    }
    return found;
  }
  RoundOver last_end(int node) {
    const auto ends = told<RoundEnds>(node);
    REQUIRE_FALSE(ends.empty());
    return ends.back().over;
  }

  FakeBoard board;
  Hub::Options options;
  std::optional<Hub> hub;
  std::map<int, std::vector<NodeMessage>> sent;
};

}  // namespace

TEST_CASE("hub: a round begins for all when the board is complete", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  CHECK(job.told<RoundBegins>(0).empty());
  CHECK(job.hub->is_gathering());
  CHECK(job.hub->missing() == "1 of 2 nodes are here: node0 (10.0.0.1)");
  job.arrive(1);
  REQUIRE(job.told<RoundBegins>(0).size() == 1);
  const RoundBegins begins = job.told<RoundBegins>(1).at(0);
  CHECK(begins.number == 1);
  CHECK(begins.ready.round.machine_rank == 1);
  CHECK(begins.ready.round.master_port == 4000);
  CHECK(begins.ready.restarts == 0);
  REQUIRE(begins.heirs.size() == 1);  // the hub itself is no heir
  CHECK(begins.heirs[0].host == "node1");
}

TEST_CASE("hub: a failure restarts all nodes together, once, when each has stopped its workers",
          "[rendezvous]") {
  Job job(2, 0, 3);
  job.arrive(0);
  job.arrive(1);
  job.hub->take(1, WorkerFailed{1, {.again = true, .failure = "theirs"}});
  job.hub->take(0, WorkerFailed{1, {.again = true, .failure = "a victim"}});
  CHECK(job.last_end(0) == RoundOver{.again = true, .failure = "theirs"});
  CHECK(job.told<RoundEnds>(0).size() == 1);
  CHECK(job.told<RoundEnds>(1).size() == 1);
  job.join(1);
  CHECK(job.told<RoundBegins>(1).size() == 1);  // node 0 still stops
  job.join(0);
  REQUIRE(job.told<RoundBegins>(1).size() == 2);
  CHECK(job.told<RoundBegins>(1)[1].ready.restarts == 1);
  CHECK(job.told<RoundBegins>(1)[1].number == 2);
}

TEST_CASE("hub: a failure that no node would repeat ends the job for all, spares included", "[rendezvous]") {
  Job job(2);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  CHECK(job.told<Waiting>(2).size() == 1);
  job.hub->take(0, WorkerFailed{1, {.failure = "f", .exit_code = 42}});
  for (int id = 0; id < 3; ++id) CHECK(job.last_end(id) == RoundOver{.failure = "f", .exit_code = 42});
  CHECK(job.board.closed);
  CHECK(job.hub->is_over());
}

TEST_CASE("hub: all have succeeded", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.arrive(1);
  job.hub->take(0, WorkersDone{1});
  CHECK_FALSE(job.board.finished);
  job.hub->take(1, WorkersDone{1});
  REQUIRE(job.board.finished);
  CHECK(job.told<JobEnds>(0).empty());
  job.board.finished();
  CHECK(job.told<JobEnds>(0).size() == 1);
  CHECK(job.told<JobEnds>(1).size() == 1);
}

TEST_CASE("hub: a node that succeeded and went is not missed", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.arrive(1);
  job.hub->take(1, WorkersDone{1});
  job.hub->lost(1, "eof", true);
  CHECK(job.told<RoundEnds>(0).empty());
  job.hub->take(0, WorkersDone{1});
  CHECK(job.board.finished);
}

TEST_CASE("hub: a lost node of a fixed group without restarts ends the job", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.arrive(1);
  job.hub->lost(1, "eof", true);
  CHECK(job.last_end(0) ==
        RoundOver{
            .text =
                "node node1 (10.0.0.1, pid 101) was lost: its connection closed; the job needs all its nodes",
            .exit_code = 75});
}

TEST_CASE("hub: a lost node of a fixed group is waited for while restarts are left", "[rendezvous]") {
  Job job(2, 0, 1);
  job.arrive(0);
  job.arrive(1);
  job.hub->lost(1, "eof", true);
  CHECK(job.last_end(0).again);
  job.join(0);
  CHECK(job.told<RoundBegins>(0).size() == 1);
  job.arrive(2);
  REQUIRE(job.told<RoundBegins>(0).size() == 2);
  CHECK(job.told<RoundBegins>(2).at(0).ready.restarts == 1);
}

TEST_CASE("hub: a range goes on with fewer, and does not count it as a restart", "[rendezvous]") {
  Job job(3, 1);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  job.hub->lost(2, "eof", true);
  CHECK(job.last_end(0).again);
  job.board.most = 2;
  job.join(0);
  job.join(1);
  REQUIRE(job.told<RoundBegins>(1).size() == 2);
  CHECK(job.told<RoundBegins>(1)[1].ready.restarts == 0);
}

TEST_CASE("hub: a spare takes the place of a lost node", "[rendezvous]") {
  Job job(2, 0, 1);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  job.hub->lost(1, "eof", true);
  job.join(0);
  REQUIRE(job.told<RoundBegins>(2).size() == 1);
  CHECK(job.told<RoundBegins>(0).size() == 2);
}

TEST_CASE("hub: a node that is lost while it stops does not keep the others", "[rendezvous]") {
  Job job(3, 1, 5);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  job.hub->take(0, WorkerFailed{1, {.again = true, .failure = "f"}});
  job.board.most = 2;
  job.join(0);
  job.join(1);
  job.hub->lost(2, "eof", true);
  CHECK(job.told<RoundBegins>(0).size() == 2);
}

TEST_CASE("hub: the smaller part of a cut network does not go on", "[rendezvous]") {
  Job job(3, 1);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  SECTION("the larger part does") {
    job.hub->lost(1, "silent for 3000 ms", false);
    CHECK(job.last_end(0).again);
  }
  SECTION("alone of three") {
    job.hub->lost(1, "silent for 3000 ms", false);
    job.hub->lost(2, "silent for 3000 ms", false);
    job.join(0);
    // whoever else went silent while the nodes stopped counts too
    CHECK(job.told<RoundBegins>(0).size() == 1);
    CHECK(job.hub->is_smaller_part());
    CHECK(
        job.hub->missing() ==
        "1 of 1 nodes are here: node0 (10.0.0.1); 2 are silent, and may be the larger part of a cut network");
  }
  SECTION("dead nodes are no part of it") {
    job.hub->lost(1, "eof", true);
    job.board.most = 1;
    job.hub->lost(2, "eof", true);
    job.join(0);
    CHECK(job.told<RoundBegins>(0).size() == 2);
  }
}

TEST_CASE("hub: a hub that the others gave up stops its workers, and waits for them to come back",
          "[rendezvous]") {
  Job job(3, 1);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  job.hub->take(1, Leave{.why = "the hub was silent", .deposed = true});
  job.hub->take(2, Leave{.why = "the hub was silent", .deposed = true});
  CHECK(job.last_end(0).again);
  CHECK_FALSE(job.hub->is_over());
  job.join(0);
  CHECK(job.told<RoundBegins>(0).size() == 1);
  SECTION("one of two that were silent makes its part the larger one") {
    job.board.most = 2;
    job.come_back(3, 1, {.round = 1});
    REQUIRE(job.told<RoundBegins>(0).size() == 2);
    CHECK(job.told<RoundBegins>(3).size() == 1);
  }
  SECTION("one that has stood up for another hub meanwhile does not") {
    job.come_back(3, 1, {.round = 1, .asked = 4711});
    CHECK(job.told<RoundBegins>(0).size() == 1);
  }
  SECTION("nor does one that was in no round, but from the machine of one that was") {
    job.board.most = 2;
    job.hub->hello(3, {.host = "node7", .addr = "10.0.0.7", .pid = 7, .link_port = 7});
    job.join(3);
    CHECK(job.told<RoundBegins>(0).size() == 1);
    job.hub->hello(4, {.host = "node1", .addr = "10.0.0.1", .pid = 400, .link_port = 400});
    job.join(4);
    CHECK(job.told<RoundBegins>(0).size() == 2);
  }
}

TEST_CASE("hub: an heir begins no round before the larger part of the last one is with it", "[rendezvous]") {
  Job job(3, 1);
  const NodeInfo other = {.host = "node2", .addr = "10.0.0.1", .pid = 102, .link_port = 5002};
  job.options.rounds = 4;
  job.options.away = {NodeInfo{}, other};
  job.restart_hub();
  job.board.most = 2;
  job.come_back(0, 1, {.round = 4});
  CHECK(job.told<RoundBegins>(0).empty());
  job.come_back(1, 2, {.round = 4});
  REQUIRE(job.told<RoundBegins>(0).size() == 1);
  CHECK(job.told<RoundBegins>(1).at(0).number == 5);
}

TEST_CASE("hub: a host that was started anew counts on from what the nodes know", "[rendezvous]") {
  Job job(2, 0, 3);
  job.arrive(0);
  job.come_back(1, 1, {.round = 6, .restarts = 1});
  REQUIRE(job.told<RoundBegins>(1).size() == 1);
  CHECK(job.told<RoundBegins>(1)[0].number == 7);
  CHECK(job.told<RoundBegins>(1)[0].ready.restarts == 2);
}

TEST_CASE("hub: a node that connects anew is the same node", "[rendezvous]") {
  Job job(2, 0, 1);
  job.arrive(0);
  job.come_back(1, 1, {});
  job.come_back(2, 1, {.round = 1});
  CHECK(job.last_end(0).again);
  CHECK(job.hub->nodes() == 2);
  job.join(0);
  CHECK(job.told<RoundBegins>(2).size() == 1);
}

TEST_CASE("hub: a node whose machine has started it again takes the place of the silent one",
          "[rendezvous]") {
  Job job(2, 0, 1);
  job.options.plan.backend = RendezvousBackend::static_;
  job.restart_hub();
  job.arrive(0);
  job.come_back(1, 1, {});
  job.hub->silent(1, {.duration = std::chrono::seconds(3)});
  CHECK(job.told<Waiting>(0).back().text ==
        "node node1 (10.0.0.1, pid 101) has been silent for 3 s; it counts as lost after 15 s");
  job.hub->hello(2, {.host = "node1", .addr = "10.0.0.1", .pid = 500, .node_rank = 1, .link_port = 500});
  job.join(2);
  job.join(0);
  CHECK(job.told<RoundBegins>(2).size() == 1);
}

TEST_CASE("hub: silence may last longer where it can only end the job", "[rendezvous]") {
  Job job(2, 0, 1);
  job.arrive(0);
  job.arrive(1);
  CHECK(job.hub->node_timeout() == std::chrono::seconds(15));
  CHECK(std::holds_alternative<Dropped>(job.hub->farewell("")));
  job.hub->take(1, WorkerFailed{1, {.again = true, .failure = "f"}});
  job.join(0);
  job.join(1);
  CHECK(job.hub->node_timeout() == std::chrono::seconds(60));
  CHECK(std::holds_alternative<RoundEnds>(job.hub->farewell("")));
}

TEST_CASE("hub: the host's own end is that of all that need it, and leaves the board open", "[rendezvous]") {
  const Leave leave = {.why = "it was asked to end by SIGTERM", .exit_code = 143};
  Job fixed(2);
  CHECK_FALSE(fixed.hub->end_without_host(leave));  // no round: the others go on waiting
  fixed.arrive(0);
  fixed.arrive(1);
  CHECK(fixed.hub->end_without_host(leave) ==
        RoundOver{.text = "the node that hosts the job has left: it was asked to end by SIGTERM; the job "
                          "needs all its nodes",
                  .exit_code = 143});
  CHECK_FALSE(fixed.board.closed);
  Job range(2, 1);
  range.arrive(0);
  range.arrive(1);
  CHECK_FALSE(range.hub->end_without_host(leave));
}

TEST_CASE("hub: a signal to one node is the end of all that need it, with its code", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.arrive(1);
  job.hub->take(1, Leave{.why = "it was asked to end by SIGTERM", .exit_code = 143});
  CHECK(job.last_end(0) ==
        RoundOver{.text = "node node1 (10.0.0.1, pid 101) has left: it was asked to end by SIGTERM; the job "
                          "needs all its nodes",
                  .exit_code = 143});
}

TEST_CASE("hub: a node that is asked to end is missed as a lost one", "[rendezvous]") {
  Job job(2, 1);
  job.arrive(0);
  job.arrive(1);
  job.hub->take(1, Leave{.why = "it was asked to end by SIGTERM"});
  CHECK(job.last_end(0).again);
  CHECK(job.last_end(0).text == "node node1 (10.0.0.1, pid 101) has left: it was asked to end by SIGTERM");
}

TEST_CASE("hub: a static rank has one owner", "[rendezvous]") {
  Job job(3);
  job.options.plan.backend = RendezvousBackend::static_;
  job.hub.emplace(
      job.board, [&](int node, const NodeMessage& message) { job.sent[node].push_back(message); },
      job.options);
  job.hub->hello(1, {.host = "a", .addr = "10.0.0.1", .pid = 1, .node_rank = 1});
  job.hub->hello(2, {.host = "b", .addr = "10.0.0.2", .pid = 2, .node_rank = 1});
  CHECK(job.last_end(2).exit_code == 2);
  CHECK(job.last_end(2).text ==
        "node rank 1 is taken by node a (10.0.0.1, pid 1); give this node another --node-rank");
  CHECK(job.hub->nodes() == 1);
}

TEST_CASE("hub: a change on the board ends the round", "[rendezvous]") {
  Job job(2, 1);
  job.arrive(0);
  job.arrive(1);
  job.board.events.on_change();
  CHECK(job.last_end(0).again);
}

TEST_CASE("hub: too few nodes in time", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.hub->give_up("waited 600 s");
  CHECK(job.last_end(0) == RoundOver{.text = "waited 600 s", .exit_code = 75});
  job.hub->hello(1, {});
  job.join(1);
  CHECK(job.last_end(1).text == "the job is over");
}

TEST_CASE("hub: group rank 0 is told where its clients come from", "[rendezvous]") {
  Job job(2);
  job.hub->hello(0, {.host = "node0", .addresses = {"10.0.0.1", "10.1.0.1"}});
  job.join(0);
  job.hub->hello(1, {.host = "node1", .addresses = {"10.0.0.2"}, .seen_at = "10.0.0.2"});
  job.join(1);
  const std::vector<std::string> places = {"10.0.0.1", "10.1.0.1", "10.0.0.2"};
  CHECK(job.hub->places_of_round() == places);
  CHECK(job.told<RoundBegins>(0).at(0).clients == places);
  CHECK(job.told<RoundBegins>(1).at(0).clients.empty());
  CHECK(job.told<RoundBegins>(0).at(0).heirs.at(0).addresses.empty());
}

TEST_CASE("hub: where addresses are translated, nobody's are told", "[rendezvous]") {
  Job job(2);
  job.hub->hello(0, {.host = "node0", .addresses = {"10.0.0.1"}});
  job.join(0);
  job.hub->hello(1, {.host = "node1", .addresses = {"10.0.0.2"}, .seen_at = "192.168.0.1"});
  job.join(1);
  CHECK(job.hub->places_of_round().empty());
}

TEST_CASE("hub: who is not in the round ends none", "[rendezvous]") {
  Job job(2, 0, 3);
  for (int id = 0; id < 3; ++id) job.arrive(id);
  job.hub->take(2, WorkerFailed{1, {.again = true, .failure = "f"}});
  job.hub->take(2, Leave{"it says so"});
  CHECK(job.told<RoundEnds>(0).empty());
  CHECK(job.told<RoundEnds>(1).empty());
}

TEST_CASE("hub: a job is full when all its nodes are in a round, until one of them is lost", "[rendezvous]") {
  Job job(2, 1, 3);
  job.arrive(0);
  CHECK_FALSE(job.hub->is_full());
  job.arrive(1);
  CHECK(job.hub->is_full());
  // The same nodes meet again.
  job.hub->take(1, WorkerFailed{1, {.again = true, .failure = "f"}});
  CHECK(job.hub->is_full());
  job.join(0);
  job.join(1);
  CHECK(job.hub->is_full());
  job.hub->lost(1, "silent", true);
  CHECK_FALSE(job.hub->is_full());
}

TEST_CASE("hub: the nodes of a full job are known by where they link from", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.hub->hello(1, {.host = "node1",
                     .addr = "node1",
                     .node_rank = 1,
                     .addresses = {"10.0.0.1", "10.1.0.1"},
                     .seen_at = "10.0.0.1"});
  job.join(1);
  CHECK(job.hub->is_place_of_node("10.0.0.1"));
  CHECK_FALSE(job.hub->is_place_of_node("10.1.0.1"));  // it says so, and nobody has seen it
  CHECK(job.told<RoundBegins>(1).at(0).places == std::vector<std::string>{"10.0.0.1", "10.1.0.1"});
}

TEST_CASE("hub: who comes to a full job may wait, where there are spares", "[rendezvous]") {
  Job job(2);
  job.arrive(0);
  job.arrive(1);
  CHECK_FALSE(job.hub->surplus());
}

TEST_CASE("hub: who comes to a full job without places for spares is to end", "[rendezvous]") {
  Job job(2);
  job.options.plan.spares = 0;
  job.hub.emplace(
      job.board, [&](int node, const NodeMessage& message) { job.sent[node].push_back(message); },
      job.options);
  job.board.events = job.hub->board_events();
  job.arrive(0);
  job.arrive(1);
  REQUIRE(job.hub->surplus());
  CHECK(job.hub->surplus()->text == "all places of the job are taken, and those of its spares");
}
