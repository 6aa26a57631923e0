// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/node_check.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "support/catch.hpp"

namespace node_check_test {

using namespace acc::launcher;

TEST_CASE("node_check: the child's result arrives on the event loop", "[preflight]") {
  boost::asio::io_context loop(1);
  NodeCheck check(loop);
  std::optional<NodeCheckResult> result;
  check.start({.log_folder = "/tmp", .meeting_host = "127.0.0.1"},
              [&](NodeCheckResult found) { result = found; });
  loop.run();
  REQUIRE(result);
  CHECK(result->passed);
  CHECK(nlohmann::json::parse(result->json)["nodes"].size() == 1);
}

TEST_CASE("node_check: nothing arrives after the end of the object", "[preflight]") {
  boost::asio::io_context loop(1);
  bool called = false;
  {
    NodeCheck check(loop);
    check.start({.log_folder = "/tmp", .meeting_host = "127.0.0.1"},
                [&](const NodeCheckResult&) { called = true; });
  }
  loop.run();
  CHECK_FALSE(called);
}

TEST_CASE("node_check: the result of checks that were started again does not arrive", "[preflight]") {
  boost::asio::io_context loop(1);
  NodeCheck check(loop);
  std::vector<int> results;
  for (const int number : {1, 2})
    check.start({.log_folder = "/tmp", .meeting_host = "127.0.0.1"},
                [&results, number](const NodeCheckResult&) { results.push_back(number); });
  loop.run();
  CHECK(results == std::vector<int>{2});
}

TEST_CASE("node_check: a job whose store a worker serves is not checked in vain", "[preflight]") {
  const NodeCheckResult result =
      run_node_check({.round = {.num_machines = 2, .use_agent_store = false}, .log_folder = "/tmp"});
  CHECK_FALSE(result.passed);
  CHECK(result.summary.ends_with("no agent serves the store of this job"));
}

TEST_CASE("node_check: a result survives the way through the pipe", "[preflight]") {
  const NodeCheckResult sent = {.passed = false, .clean = false, .summary = "s", .text = "t\n", .json = "{}"};
  CHECK(decode_result(encode(sent)) == sent);
  CHECK_THROWS(decode_result(""));
}

TEST_CASE("node_check: words of other nodes move no cursor", "[preflight]") {
  const NodeCheckResult result =
      decode_result(encode(NodeCheckResult{.summary = "a\x1b[2J", .text = "b\x1b[1A\n"}));
  CHECK(result.summary == "a\\x1b[2J");
  CHECK(result.text == "b\\x1b[1A\n");
}

}  // namespace node_check_test
