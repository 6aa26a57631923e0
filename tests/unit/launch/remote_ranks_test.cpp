// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/remote_ranks.hpp"

#include <unistd.h>

#include <thread>

#include "support/catch.hpp"

namespace remote_ranks_test {

using namespace acc::launcher;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

const std::vector<PeerNode> kPeers = {{.node_rank = 1, .host = "b", .workers = 1, .reports = true},
                                      {.node_rank = 2, .host = "c", .workers = 1}};

/// A node of a job, and what it has sent and answered.
struct Viewer {
  explicit Viewer(RemoteRanksTimes times = {.wait = 1h, .pause = 0ms, .pause_of_node = 0ms})
      : remote(loop, parts(), times) {}

  RemoteRanksParts parts() {
    return {.want =
                [this] {
                  ++wants;
                  return reason;
                },
            .report = [this](const std::string& ranks) { reports.push_back(ranks); },
            .measure = [this](auto done) { measuring = std::move(done); },
            .host = "a"};
  }
  void ask() {
    remote.ask([this](const json& nodes) { answers.push_back(nodes); });
  }
  void run_until(const std::function<bool()>& holds) {
    while (!holds()) {
      REQUIRE(loop.run_one() > 0);
      loop.restart();
    }
  }

  boost::asio::io_context loop = {};
  std::string reason = {};
  int wants = 0;
  std::vector<std::string> reports = {};
  std::function<void(std::string)> measuring = {};
  std::vector<json> answers = {};
  RemoteRanks remote;
};

}  // namespace

TEST_CASE("remote_ranks: who looks gets what all nodes say anew", "[launch]") {
  Viewer viewer;
  viewer.ask();
  viewer.ask();  // the same answer
  CHECK(viewer.wants == 1);
  viewer.remote.on_peers(kPeers);
  CHECK(viewer.answers.empty());
  viewer.remote.on_report({.node_rank = 1, .ranks = "[]"});
  REQUIRE(viewer.answers.size() == 2);
  const json nodes = viewer.answers[0]["nodes"];
  CHECK(viewer.answers[0]["host"] == "a");
  CHECK(nodes[0]["ranks"] == "[]");
  CHECK(nodes[0]["age_seconds"].is_number());
  CHECK(nodes[1]["problem"] == "it runs an older acc");
  CHECK(nodes[1]["host"] == "c");
}

TEST_CASE("remote_ranks: without other nodes the answer says why, at once", "[launch]") {
  Viewer viewer;
  viewer.reason = "torchrun hosts the job";
  viewer.ask();
  REQUIRE(viewer.answers.size() == 1);
  CHECK(viewer.answers[0]["reason"] == "torchrun hosts the job");
  CHECK(viewer.answers[0]["nodes"].empty());
}

TEST_CASE("remote_ranks: a coordinator that was lost blocks nobody", "[launch]") {
  Viewer viewer({.wait = 1ms, .pause = 0ms, .pause_of_node = 0ms});
  viewer.ask();
  viewer.run_until([&] { return !viewer.answers.empty(); });
  CHECK(viewer.answers[0]["reason"] == "the node that leads the job does not answer");
}

TEST_CASE("remote_ranks: a node that did not answer in time is waited for once", "[launch]") {
  Viewer viewer({.wait = 1ms, .pause = 0ms, .pause_of_node = 0ms});
  viewer.ask();
  viewer.remote.on_peers(kPeers);
  viewer.run_until([&] { return !viewer.answers.empty(); });
  CHECK(viewer.answers[0]["reason"] == "");
  CHECK(viewer.answers[0]["nodes"][0]["age_seconds"].is_null());
  viewer.ask();
  viewer.remote.on_peers(kPeers);
  CHECK(viewer.answers.size() == 2);  // without a wait
  viewer.remote.on_report({.node_rank = 1, .ranks = "[]"});
  viewer.ask();
  viewer.remote.on_peers(kPeers);
  CHECK(viewer.answers.size() == 2);  // it is waited for again
  viewer.remote.on_report({.node_rank = 1, .ranks = "[1]"});
  CHECK(viewer.answers.at(2)["nodes"][0]["ranks"] == "[1]");
}

TEST_CASE("remote_ranks: a node that cannot say once is shown as before, and its next answer counts",
          "[launch]") {
  Viewer viewer;
  const auto answer = [&](const std::string& ranks) {
    viewer.ask();
    viewer.remote.on_peers({kPeers[0]});
    viewer.remote.on_report({.node_rank = 1, .ranks = ranks});
    return viewer.answers.back()["nodes"][0];
  };
  CHECK(answer("")["problem"] == "it could not measure them");
  CHECK(answer("[1]")["problem"] == "");
  CHECK(answer("")["ranks"] == "[1]");
  CHECK(answer("[2]")["ranks"] == "[2]");
}

TEST_CASE("remote_ranks: nodes are not asked more often than once in the pause", "[launch]") {
  Viewer viewer({.wait = 1h, .pause = 1h});
  viewer.ask();
  viewer.remote.on_peers(kPeers);
  viewer.remote.on_report({.node_rank = 1, .ranks = "[]"});
  viewer.ask();
  CHECK(viewer.wants == 1);
  CHECK(viewer.answers.at(1)["nodes"].size() == 2);
}

TEST_CASE("remote_ranks: reports of another attempt, and of unknown nodes, are forgotten", "[launch]") {
  Viewer viewer;
  viewer.ask();
  viewer.remote.on_peers({kPeers[0]});
  viewer.remote.on_report({.node_rank = 7, .ranks = "[]"});
  viewer.remote.report(AttemptStarted{});
  CHECK(viewer.answers.at(0)["nodes"].empty());
  CHECK(viewer.answers.at(0)["reason"] == "a new attempt begins");
  viewer.remote.on_report({.node_rank = 1, .ranks = "[]"});
  viewer.ask();
  viewer.remote.on_peers({});
  CHECK(viewer.answers.at(1)["nodes"].empty());
}

TEST_CASE("remote_ranks: 1,000 ranks take one answer", "[launch]") {
  Viewer viewer;
  std::vector<PeerNode> peers;
  for (int node = 1; node < 1000; ++node)
    peers.push_back({.node_rank = node, .host = "b", .workers = 1, .reports = true});
  viewer.ask();
  viewer.remote.on_peers(peers);
  const std::vector<RankView> ranks = {{.rank = 1, .progress = ProgressView{.section = "data"}}};
  const std::string text = to_json(ranks, std::vector<RankUsage>(1)).dump();
  for (int node = 1; node < 1000; ++node) viewer.remote.on_report({.node_rank = node, .ranks = text});
  REQUIRE(viewer.answers.size() == 1);
  const OtherNodes others = other_nodes_from_json(viewer.answers[0]);
  CHECK(others.nodes.size() == 999);
  for (const NodeView& node : others.nodes) CHECK(node.ranks.size() == 1);
}

TEST_CASE("remote_ranks: a node measures only when it is asked, and once at a time", "[launch]") {
  Viewer viewer;
  CHECK_FALSE(viewer.measuring);
  viewer.remote.on_wanted();
  const auto done = std::exchange(viewer.measuring, nullptr);
  REQUIRE(done);
  viewer.remote.on_wanted();
  CHECK_FALSE(viewer.measuring);
  done("[]");
  CHECK(viewer.reports == std::vector<std::string>{"[]"});
  viewer.remote.on_wanted();
  CHECK(viewer.measuring);
}

TEST_CASE("remote_ranks: a node that is asked again at once waits for the end of the pause", "[launch]") {
  Viewer viewer({.wait = 1h, .pause = 20ms});
  viewer.remote.on_wanted();
  const auto began = std::chrono::steady_clock::now();
  std::exchange(viewer.measuring, nullptr)("[]");
  viewer.remote.on_wanted();
  viewer.run_until([&] { return viewer.measuring != nullptr; });
  CHECK(std::chrono::steady_clock::now() - began >= 15ms);
}

TEST_CASE("remote_ranks: a node reports what its ranks use", "[launch]") {
  JobView job;
  job.ranks = {{.rank = 4, .pid = ::getpid()}};
  const json ranks = json::parse(measured_ranks([&] { return job; }));
  REQUIRE(ranks.size() == 1);
  CHECK(ranks[0]["rank"] == 4);
  CHECK(ranks[0]["processes"] >= 1);
  CHECK(ranks[0]["memory_bytes"] > 0);
  CHECK(ranks[0]["cpu_percent"].is_number());
}

}  // namespace remote_ranks_test
