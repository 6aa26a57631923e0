// SPDX-License-Identifier: Apache-2.0
#include "acc/control/node_view.hpp"

#include "support/catch.hpp"

namespace node_view_test {

using namespace acc::launcher;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

const RankView kRank = {
    .rank = 3,
    .local_rank = 1,
    .pid = 4711,
    .progress = ProgressView{.steps = 812, .loss = 0.5, .section = "data", .slow_in = "data"}};
const RankUsage kUsage = {.state = "running",
                          .uptime = 65s,
                          .cpu_percent = 99.5,
                          .memory_bytes = 1 << 20U,
                          .processes = 1,
                          .threads = 12,
                          .gpus = {{.index = 3, .memory_bytes = 512, .use = 87, .watts = 301.5}}};

std::string text_of(const std::vector<RankView>& ranks) {
  return to_json(ranks, std::vector<RankUsage>(ranks.size(), kUsage)).dump();
}

NodeReport report_of(const std::string& ranks, int workers = 1) {
  return {.node_rank = 1, .host = "b", .workers = workers, .age = 250ms, .ranks = ranks};
}

NodeView view_of(const NodeReport& report) {
  return other_nodes_from_json(to_json(NodeReports{.host = "a", .nodes = {report}})).nodes.at(0);
}

}  // namespace

TEST_CASE("node_view: a viewer sees of another node's rank what that node sees", "[control]") {
  const NodeView node = view_of(report_of(text_of({kRank})));
  CHECK(node.problem.empty());
  CHECK(node.age == 250ms);
  REQUIRE(node.ranks.size() == 1);
  CHECK(node.ranks[0] == kRank);
  CHECK(to_json(node.ranks, node.usage) == to_json({kRank}, {kUsage}));
  CHECK(to_json(node)["ranks"][0]["gpus"][0]["watts"] == 301.5);
}

TEST_CASE("node_view: a node that cannot be shown with its ranks says why", "[control]") {
  const auto problem = [](NodeReport report, auto change) {
    change(report);
    const NodeView node = view_of(report);
    CHECK(node.ranks.empty());
    CHECK(node.usage.empty());
    return node.problem;
  };
  const NodeReport good = report_of(text_of({kRank}));
  CHECK(problem(good, [](NodeReport& node) { node.problem = "it runs an older acc"; }) ==
        "it runs an older acc");
  CHECK(problem(good, [](NodeReport& node) { node.age.reset(); }) == "it does not answer");
  for (const std::string text : {"", "[", "{}x", "[1]", R"([{"rank": "x"}])", "[[]]"})
    CHECK(problem(good, [&](NodeReport& node) { node.ranks = text; }) == "its answer cannot be read");
  for (const json& rank : {json(4294967299), json(1e300), json(3.5)}) {
    CHECK(problem(good, [&](NodeReport& node) {
            json ranks = json::parse(node.ranks);
            ranks[0]["rank"] = rank;
            node.ranks = ranks.dump();
          }) == "its answer cannot be read");  // not rank 3
  }
  CHECK(problem(good, [](NodeReport& node) {
          json ranks = json::parse(node.ranks);
          ranks[0]["progress"] = "here";
          const std::string text = ranks.dump();
          const std::size_t begin = text.find("\"here\"");
          constexpr std::size_t kDepth = 1'000'000;
          node.ranks = text.substr(0, begin) + std::string(kDepth, '[') + std::string(kDepth, ']') +
                       text.substr(begin + 6);
        }) == "its answer cannot be read");  // would use up the stack
  CHECK(problem(good, [](NodeReport& node) { node.ranks = text_of({kRank, kRank}); }) ==
        "its answer cannot be read");  // more than it has
}

TEST_CASE("node_view: a node speaks for its own ranks alone", "[control]") {
  const auto is_shown = [](int first_rank, int workers, const std::vector<int>& numbers) {
    std::vector<RankView> ranks;
    for (const int number : numbers) ranks.push_back({.rank = number});
    NodeReport report = report_of(text_of(ranks), workers);
    report.first_rank = first_rank;
    return view_of(report).problem.empty();
  };
  CHECK(is_shown(2, 2, {2, 3}));
  CHECK(is_shown(2, 2, {3}));
  CHECK_FALSE(is_shown(2, 2, {1, 2}));
  CHECK_FALSE(is_shown(2, 2, {3, 4}));
  CHECK_FALSE(is_shown(2, 2, {3, 3}));
  CHECK(is_shown(-1, 2, {7, 9}));  // the node that leads does not say
  CHECK_FALSE(is_shown(-1, 2, {-1, 9}));
}

TEST_CASE("node_view: what other nodes send moves no cursor", "[control]") {
  RankView rank = kRank;
  rank.ended = "\x1b[2J";
  rank.progress->collective = "\x1b[2J";
  NodeReport report = report_of(text_of({rank}));
  report.host = "\x1b[2J";
  const NodeView node = view_of(report);
  CHECK(node.host == "\\x1b[2J");
  CHECK(node.ranks.at(0).ended == "\\x1b[2J");
  CHECK(node.ranks.at(0).progress->collective == "\\x1b[2J");
}

TEST_CASE("node_view: 1,000 ranks fit into an answer, and what does not is left out", "[control]") {
  std::vector<RankView> ranks;
  for (int rank = 0; rank < 1000; ++rank) ranks.push_back({.rank = rank, .progress = kRank.progress});
  const NodeReport node = report_of(text_of(ranks), 1000);
  CHECK(view_of(node).ranks.size() == 1000);
  const json answer = to_json(NodeReports{.nodes = std::vector<NodeReport>(10, node)});
  CHECK(answer.dump().size() < std::size_t{4} << 20U);
  const OtherNodes other_nodes = other_nodes_from_json(answer);
  CHECK(other_nodes.nodes.front().problem.empty());
  CHECK(other_nodes.nodes.back().problem == "the answer would be too long");
}

TEST_CASE("node_view: a node that has become silent says so in the state of its ranks", "[control]") {
  CHECK(shown_state({.age = 9s}, kUsage) == "running");
  CHECK(shown_state({.age = 12s}, kUsage) == "silent 12s");
  CHECK(shown_state({.age = 12s}, {.state = "exit code 0"}) == "exit code 0");
}

TEST_CASE("node_view: each rank that is not shown is accounted for", "[control]") {
  const JobView job = {.world_size = 8, .rendezvous = "connected", .ranks = {{.rank = 0}, {.rank = 1}}};
  const NodeView shown = {.host = "b", .workers = 2, .ranks = std::vector<RankView>(2)};
  const NodeView older = {.host = "c", .workers = 1, .problem = "it runs an older acc"};
  using Lines = std::vector<std::string>;
  CHECK(lines_of_missing(job, {.nodes = {shown, older}}) ==
        Lines{"1 rank on c: it runs an older acc", "3 ranks on other machines: no acc runs there"});
  const NodeView starting = {.host = "b", .workers = 3, .ranks = std::vector<RankView>(2)};
  CHECK(lines_of_missing({.world_size = 5, .rendezvous = "connected", .ranks = job.ranks},
                         {.nodes = {starting}}) == Lines{"1 rank on b: not reported yet"});
  CHECK(lines_of_missing(job, {.reason = "torchrun hosts the job"}) ==
        Lines{"6 ranks on other machines: torchrun hosts the job"});
  CHECK(lines_of_missing({.world_size = 2, .rendezvous = "running", .ranks = job.ranks},
                         {.reason = "the nodes meet in a file"})
            .empty());
  CHECK(lines_of_missing({.world_size = 4, .rendezvous = "connected", .ranks = job.ranks},
                         {.reason = "the leader is silent", .nodes = {shown}}) ==
        Lines{"ranks of other machines are as last seen: the leader is silent"});
  CHECK(lines_of_missing({.hosts = 2}, {.reason = "a does not answer"}) ==
        Lines{"its ranks are not known: a does not answer"});
}

TEST_CASE("node_view: ranks that this node has yet to start are not another machine's", "[control]") {
  using Lines = std::vector<std::string>;
  CHECK(lines_of_missing({.world_size = 2, .workers = 2}, {}) == Lines{"2 ranks have not been started"});
  JobView job = {.world_size = 2, .workers = 2, .ranks = {{.rank = 0}}};
  CHECK(lines_of_missing(job, {}) == Lines{"1 rank has not been started"});
  job.rendezvous = "connected";
  job.world_size = 4;
  CHECK(lines_of_missing(job, {}) ==
        Lines{"1 rank of this node has not been started", "2 ranks on other machines: no acc runs there"});
  const NodeView whole = {.host = "b", .workers = 4, .ranks = std::vector<RankView>(4)};
  CHECK(lines_of_missing({.world_size = 4, .workers = 2, .rendezvous = "spare"}, {.nodes = {whole}}).empty());
}

TEST_CASE("node_view: who has no ranks of the job learns of it from who has", "[control]") {
  const OtherNodes other_nodes =
      other_nodes_from_json(to_json(NodeReports{.world_size = 8, .attempt = 1, .max_restarts = 3}));
  CHECK(other_nodes.world_size == 8);
  CHECK(other_nodes.attempt == 1);
  CHECK(other_nodes.max_restarts == 3);
}

TEST_CASE("node_view: an answer of another form is an error", "[control]") {
  CHECK_THROWS_AS(other_nodes_from_json(json::object()), acc::Error);
  CHECK_THROWS_AS(other_nodes_from_json({{"host", 1}, {"node_rank", 0}, {"reason", ""}, {"nodes", {1}}}),
                  acc::Error);
}

}  // namespace node_view_test
