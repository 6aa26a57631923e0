// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/report.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/observations.hpp"

namespace report_test {

using namespace acc::test;

namespace {

Observations three_nodes() {
  Observations seen = healthy_nodes(3);
  seen.nodes[1].gpus.pop_back();
  seen.nodes[2].driver = "535.1";
  seen.nodes[2].xids.reset();
  return seen;
}

}  // namespace

TEST_CASE("report: a table marks the outliers and names them below", "[preflight]") {
  const Observations seen = three_nodes();
  CHECK(preflight_text(seen, judge(seen)) ==
        R"(preflight of 3 nodes, 1.2 s
  node   GPUs  driver   GPU memory free   ECC errors  slowdown  Xid           memory free         disk free  clock  reaches  sends     receives
  node0  2     550.54   79 GiB of 80 GiB  0           none      none          200 GiB of 256 GiB  50 GiB     0 ms   2 of 2   8 Gbit/s  8 Gbit/s
  node1  1 !   550.54   79 GiB of 80 GiB  0           none      none          200 GiB of 256 GiB  50 GiB     0 ms   2 of 2   8 Gbit/s  8 Gbit/s
  node2  2     535.1 !  79 GiB of 80 GiB  0           none      not readable  200 GiB of 256 GiB  50 GiB     0 ms   2 of 2   8 Gbit/s  8 Gbit/s
error: node1: has 1 GPU, others have 2 (see `nvidia-smi -L` and the kernel log there; leave the node out, or start fewer workers on it)
warning: node2: has the driver 535.1, others 550.54 (install the same one on all nodes)
)");
}

TEST_CASE("report: one node without GPUs has the columns of its own machine only", "[preflight]") {
  Observations seen = healthy_nodes(1);
  seen.nodes[0].gpus.clear();
  seen.nodes[0].driver.clear();
  CHECK(preflight_text(seen, {}) == R"(preflight of 1 node, 1.2 s
  node   memory free         disk free
  node0  200 GiB of 256 GiB  50 GiB
)");
}

TEST_CASE("report: connections that failed are subtracted from those to all other nodes", "[preflight]") {
  Observations seen = healthy_nodes(4);
  std::erase_if(seen.connections, [](const ConnectionCheck& one) { return one.from == 0 || one.to != 0; });
  seen.connections.push_back({.from = 1, .to = 2, .error = "no answer within 3 s"});
  const std::string text = preflight_text(seen, {});
  CHECK(text.find(" 2 of 3 ") != std::string::npos);
  CHECK(text.find(" 3 of 3 ") != std::string::npos);
  CHECK(text.find(" -        8 Gbit/s") != std::string::npos);  // node 0 has reported none
}

TEST_CASE("report: a clock may be further away than can be counted in milliseconds", "[preflight]") {
  Observations seen = healthy_nodes(2);
  for (ConnectionCheck& one : seen.connections) one.clock_offset = one.from == 0 ? 1e300 : -1e300;
  CHECK(preflight_text(seen, {}).find("-1000") != std::string::npos);
}

TEST_CASE("report: programs get everything that was seen, and what it means", "[preflight]") {
  const Observations seen = three_nodes();
  const auto json = nlohmann::json::parse(preflight_json(seen, judge(seen)));
  CHECK(json["schema"] == 1);
  CHECK(json["passed"] == false);
  CHECK(json["num_nodes"] == 3);
  CHECK(json["nodes"][1]["gpus"].size() == 1);
  CHECK(json["nodes"][1]["xids"] == nlohmann::json::array());
  CHECK(json["nodes"][2]["xids"] == nullptr);
  CHECK(json["nodes"][0]["gpus"][1]["uncorrected_ecc_errors"] == 0);
  CHECK(json["connections"].size() == 6);
  CHECK(json["transfers"][0] ==
        nlohmann::json{{"from", 0}, {"to", 1}, {"bytes_per_second", 1e9}, {"error", ""}});
  CHECK(json["findings"][0]["severity"] == "error");
  CHECK(json["findings"][0]["check"] == "devices");
  CHECK(json["findings"][0]["nodes"] == nlohmann::json{1});
}

TEST_CASE("report: the line that refuses the start has the errors alone, and three at most", "[preflight]") {
  std::vector<Finding> findings(5, Finding{.severity = Severity::error, .text = "node1: broken"});
  findings.push_back({.text = "node2: strange"});
  CHECK(refusal_text(findings, 2) ==
        "the preflight failed: node1: broken; node1: broken; node1: broken; 2 more; the table is on node 0");
}

TEST_CASE("report: the line of a single node does not point to another", "[preflight]") {
  CHECK(refusal_text({{.severity = Severity::error, .text = "node0: broken"}}, 1) ==
        "the preflight failed: node0: broken");
}

TEST_CASE("report: findings survive the way to other nodes", "[preflight]") {
  const std::vector<Finding> findings = judge(three_nodes());
  CHECK(decode_findings(encode(findings)) == findings);
  CHECK_THROWS(decode_findings("{"));
}

}  // namespace report_test
