// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/node_message.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace node_message_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

const NodeInfo kNode = {.host = "node1",
                        .addr = "10.0.0.1",
                        .pid = 7,
                        .node_rank = 1,
                        .role = "r",
                        .workers = 8,
                        .store_port = 4000,
                        .node_port = 4001,
                        .protocol = 2};

const Progress kProgress = {.pid = 7,
                            .process_start = 1234567,
                            .steps = 812,
                            .step_ended = 3'600'000'001us,
                            .spent = {1us, 2us, 3us, 4us, 5us, 6us, 7us, 8us}};

}  // namespace

TEST_CASE("node_message: every message arrives as it was sent", "[rendezvous]") {
  const Round round = {.machine_rank = 1,
                       .num_machines = 2,
                       .first_rank = 8,
                       .world_size = 12,
                       .first_role_rank = 3,
                       .role_world_size = 9,
                       .master_addr = "10.0.0.1",
                       .master_port = 4000,
                       .use_agent_store = false};
  const StepsReached reached = {.is_known = true, .steps = 812, .counts_over_restarts = false};
  const RoundOver verdict = {.restart = true,
                             .text = "t",
                             .failure = "{\"rank\":1}",
                             .exit_code = 3,
                             .reached = reached,
                             .reason = "r"};
  const Stall stall = {.first = reached, .restarts = 2};
  const std::vector<NodeMessage> messages = {
      Hello{.run_id = "a b\n\"",
            .node = kNode,
            .is_coordinator = true,
            .history = {.round = 3, .restarts = 1, .asked_port = 4001, .stall = stall},
            .proof = "q"},
      Challenge{"n"},
      Proof{"m", "p"},
      Full{},
      Join{4002, {"10.0.0.2"}},
      WorkerFailed{3, verdict},
      WorkersDone{4},
      Leave{"bye", true, 143},
      RoundBegins{.number = 2,
                  .ready = {round, 5},
                  .successors = {kNode, kNode},
                  .coordinator = kNode,
                  .nodes = 2,
                  .addresses = {"10.0.0.2"},
                  .stall = stall},
      RoundEnds{verdict},
      Dropped{"silent"},
      Moved{"10.0.0.2", 4003},
      Moved{"10.0.0.2", 4003, true},
      JobEnds{},
      Waiting{"for node 1", {kNode}},
      EndNotice{10, "node1"},
      NodeProgress{.round = 2, .ranks = {{5, kProgress}, {6, {}}}},
      SlowRanks{2, {{5, acc::Section::data}}},
      StopJob{143},
      RoundEntered{3},
      RanksWanted{2},
      Peers{2, {{.node_rank = 3, .host = "b", .workers = 8, .first_rank = 24, .reports = true}}},
      RankReport{.round = 2, .node_rank = 3, .ranks = R"([{"rank": 24}])"},
      NodeHang{2, NodeHangStage::examined, 3},
      JobHang{2, JobHangStage::found, 3},
      Heartbeat{}};
  for (const NodeMessage& message : messages) {
    const std::string line = encode(message);
    CHECK(line.find('\n') == line.size() - 1);
    CHECK(decode(line) == message);
  }
}

TEST_CASE("node_message: a machine with very many addresses tells none, and any may be its own",
          "[rendezvous]") {
  OwnNames machine = {.addresses = {"127.0.0.1"}};
  for (int i = 1; i <= 128; ++i) machine.addresses.push_back("10.0.0." + std::to_string(i));
  CHECK(addresses_to_tell(machine).size() == 128);
  machine.addresses.emplace_back("10.0.1.1");
  CHECK(addresses_to_tell(machine).empty());
  CHECK(is_seen_directly({.addresses = {"10.0.0.1"}}));
  CHECK(is_seen_directly({.addresses = {"10.0.0.1"}, .seen_at = "10.0.0.1"}));
  CHECK_FALSE(is_seen_directly({.addresses = {}, .seen_at = "10.0.0.1"}));
  CHECK_FALSE(is_seen_directly({.addresses = {}}));
}

TEST_CASE("node_message: unknown fields are ignored", "[rendezvous]") {
  CHECK(decode(R"({"message":"done","round":2,"colour":"red"})") == NodeMessage(WorkersDone{2}));
}

TEST_CASE("node_message: sections that a node of another acc does not know, or knows beside ours, do no harm",
          "[rendezvous]") {
  const auto spent_of = [](const std::string& spent) {
    const std::string rank = R"({"rank":5,"pid":7,"start":1,"steps":812,"ended":9,"spent":)" + spent + "}";
    const auto message = decode(R"({"message":"progress","round":2,"ranks":[)" + rank + "]}");
    return std::get<NodeProgress>(message).ranks.at(0).progress.spent;
  };
  CHECK(spent_of("[1,2]") == decltype(Progress::spent){1us, 2us});
  CHECK(spent_of("[1,2,3,4,5,6,7,8,9]") == kProgress.spent);
}

TEST_CASE("node_message: of a rank that says it the time in whole steps is told", "[rendezvous]") {
  Progress progress = kProgress;
  progress.spent_in_steps = {1us, 1us};
  const auto decoded = std::get<NodeProgress>(decode(encode(NodeProgress{.ranks = {{5, progress}}})));
  CHECK(times_of_steps(decoded.ranks.at(0).progress) == progress.spent_in_steps);
}

TEST_CASE("node_message: the progress of a node of 64 ranks after weeks is a short message", "[rendezvous]") {
  NodeProgress node{.round = 10};
  for (int rank = 8'000; rank < 8'064; ++rank) {
    Progress progress{.pid = 4'000'000, .process_start = 1'000'000'000, .steps = 100'000'000};
    progress.step_ended = 2'000h;
    progress.spent.fill(300h);
    node.ranks.push_back({rank, progress});
  }
  CHECK(encode(node).size() < 16'384);
}

TEST_CASE("node_message: a node of an older acc speaks protocol 1", "[rendezvous]") {
  const auto hello = std::get<Hello>(decode(R"({"message": "hello", "node": {"host": "node1"}})"));
  CHECK(hello.node.protocol == 1);
}

TEST_CASE("node_message: counts that no rank can have reached are refused", "[rendezvous]") {
  for (const char* counts :
       {R"("steps":-1,"ended":9,"spent":[])", R"("steps":1,"ended":9223372036854775807,"spent":[])",
        R"("steps":1,"ended":9,"spent":[-5])"}) {
    const std::string rank = R"({"rank":5,"pid":7,"start":1,)" + std::string(counts) + "}";
    CHECK(test::error_of([&] { decode(R"({"message":"progress","round":2,"ranks":[)" + rank + "]}"); }) ==
          "a node sent an invalid message: it has an impossible count");
  }
}

TEST_CASE("node_message: invalid messages are refused", "[rendezvous]") {
  for (const std::string line : {"", "{", "[]", "7", R"({"message":"dance"})", R"({"round":1})",
                                 R"({"message":"done","round":"x"})"}) {
    CHECK(test::error_of([&] { decode(line); }).starts_with("a node sent an invalid message"));
  }
}

TEST_CASE("node_message: deep nesting is refused", "[rendezvous]") {
  const std::string line = R"({"message":"beat","x":)" + std::string(60'000, '[');
  CHECK(test::error_of([&] { decode(line); }) == "a node sent an invalid message: it is nested too deeply");
}

TEST_CASE("node_message: a number that its field cannot hold is refused, not another number",
          "[rendezvous]") {
  for (const std::string line :
       {R"({"message":"done","round":1e300})", R"({"message":"done","round":4294967296})",
        R"({"message":"done","round":1.5})", R"({"message":"join","store_port":65537})",
        R"({"message":"join","store_port":-1})",
        R"({"message":"slow_ranks","ranks":[{"rank":1,"section":256}]})",
        R"({"message":"progress","ranks":[{"rank":4294967296}]})"}) {
    CAPTURE(line);
    CHECK(test::error_of([&] { decode(line); }) ==
          "a node sent an invalid message: it has an impossible number");
  }
}

TEST_CASE("node_message: an error does not repeat a message of megabytes", "[rendezvous]") {
  const std::string long_text(1'000'000, 'x');
  for (const std::string& line : {R"({"message":")" + long_text + "\"}", "{\"message\":\"" + long_text})
    CHECK(test::error_of([&] { decode(line); }).size() < 300);
}

}  // namespace node_message_test
