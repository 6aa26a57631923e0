// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace report_test {

using acc::selftest::Outlier;
using acc::selftest::Report;

namespace {

Report good_report() {
  Report report;
  report.num_processes = 3;
  report.device = "cpu";
  report.mixed_precision = "no";
  report.checks = {{.name = "state", .seconds = 0.002}, {.name = "collectives", .seconds = 1.5}};
  report.links = {{0, 1, 20e-6, 2e9}, {0, 2, 21e-6, 6e8}, {1, 2, 19e-6, 5e8}};
  report.all_reduces = {{4096, 50e-6, 109e6}, {1 << 20, 2e-3, 0.7e9}};
  report.hosts = {"a", "a", "b"};
  report.copies = {{0, 9e9}, {1, 8e9}, {2, 9e9}};
  report.matmuls = {{0, "a", 0.010, 27e9}, {1, "a", 0.011, 24e9}, {2, "b", 0.010, 27e9}};
  return report;
}

}  // namespace

TEST_CASE("report: the text has each check, the measurements and the result", "[selftest]") {
  const Report report = good_report();
  CHECK(check_text(report.checks[0]) == "state                    ok (2.0 ms)\n");
  CHECK(summary_text(report) ==
        "links                    all 3 pairs reach each other; the slowest, 0 and 2: 21 us, 600 MB/s\n"
        "all-reduce of 4 KiB      50 us, 109 MB/s\n"
        "all-reduce of 1 MiB      2.0 ms, 700 MB/s\n"
        "matmul, rank 0           10.0 ms, 27.0 GFLOP/s, a\n"
        "matmul, rank 1           11.0 ms, 24.0 GFLOP/s, a\n"
        "matmul, rank 2           10.0 ms, 27.0 GFLOP/s, b\n"
        "memory                   the slowest, rank 1 copies at 8.0 GB/s\n"
        "2 of 2 checks passed on 3 processes\n");
}

TEST_CASE("report: a failed check and an early end fail the test", "[selftest]") {
  Report report = good_report();
  CHECK(report.passed());
  report.error = "ended early";
  CHECK_FALSE(report.passed());
  report.error.clear();
  report.checks[1].failure = "rank 1: gather is wrong";
  CHECK_FALSE(report.passed());
  CHECK(check_text(report.checks[1]) ==
        "collectives              FAILED: rank 1: gather is wrong (1.50 s)\n");
  CHECK(summary_text(report).ends_with("1 of 2 checks passed on 3 processes\n"));
}

TEST_CASE("report: a rank or a pair that is much slower is named", "[selftest]") {
  Report report = good_report();
  CHECK(outlier_lines(report).empty());
  report.matmuls[1].seconds = 0.025;
  report.copies[2].bytes_per_second = 3e9;
  report.links[2].latency_seconds = 200e-6;
  report.links[1].bytes_per_second = 1e8;
  CHECK(outlier_lines(report) ==
        std::vector<std::string>{
            "rank 1 on a is slow to compute: 2.5 times the others' time",
            "rank 2 has slow memory: 2.7 times the others' time",
            "ranks 1 and 2 have a slow connection: 9.5 times the latency of the other pairs",
            "ranks 0 and 2 have a slow connection: 5.0 times the transfer time of the other pairs"});
  CHECK(summary_text(report).find("outlier                  rank 1 on a is slow to compute") !=
        std::string::npos);
}

TEST_CASE("report: links within a host are compared with each other, as are those between hosts",
          "[selftest]") {
  Report report;
  report.hosts = {"a", "a", "b", "b"};
  report.links = {{0, 1, 5e-6, 9e9},  {2, 3, 5e-6, 9e9},  {0, 2, 50e-6, 1e9},
                  {0, 3, 50e-6, 1e9}, {1, 2, 50e-6, 1e9}, {1, 3, 50e-6, 4e8}};
  CHECK(outliers_of(report).latencies.empty());
  CHECK(outliers_of(report).bandwidths == std::vector<Outlier>{{5, 2.5}});
  report.links[1].latency_seconds = 15e-6;  // still within what caches and cores do
  CHECK(outliers_of(report).latencies.empty());
}

TEST_CASE("report: of many slow pairs the slowest are named", "[selftest]") {
  Report report;
  report.hosts = std::vector<std::string>(10, "a");
  for (int first = 0; first < 10; ++first) {
    for (int second = first + 1; second < 10; ++second)
      report.links.push_back({first, second, second == 9 ? (100 + first) * 1e-6 : 5e-6, 1e9});
  }
  const auto lines = outlier_lines(report);
  REQUIRE(lines.size() == 9);
  CHECK(lines[0].starts_with("ranks 8 and 9 "));
  CHECK(lines[8] == "and 1 pair more, by latency");
}

TEST_CASE("report: the JSON has the same content", "[selftest]") {
  const nlohmann::json json = to_json(good_report());
  CHECK(json["schema"] == 1);
  CHECK(json["passed"] == true);
  CHECK(json["num_processes"] == 3);
  CHECK(json["checks"][1] ==
        nlohmann::json{{"name", "collectives"}, {"passed", true}, {"seconds", 1.5}, {"failure", ""}});
  CHECK(json["links"][2]["ranks"] == nlohmann::json{1, 2});
  CHECK(json["all_reduce"][0]["bytes"] == 4096);
  CHECK(json["matmul"][2]["host"] == "b");
  CHECK(json["matmul"][2]["outlier"] == false);
  CHECK(json["hosts"] == nlohmann::json{"a", "a", "b"});
  CHECK(json["memory"][1]["bytes_per_second"] == 8e9);
  CHECK(json["outliers"].empty());
}

TEST_CASE("report: the JSON marks outliers", "[selftest]") {
  Report report = good_report();
  report.links[2].latency_seconds = 200e-6;
  report.matmuls[1].seconds = 0.025;
  const nlohmann::json json = to_json(report);
  CHECK(json["links"][2]["latency_outlier"] == true);
  CHECK(json["links"][2]["bandwidth_outlier"] == false);
  CHECK(json["links"][1]["latency_outlier"] == false);
  CHECK(json["matmul"][1]["outlier"] == true);
}

using acc::selftest::num_rounds;
using acc::selftest::partner_of;

TEST_CASE("partner_of: over all rounds each pair is measured once", "[selftest]") {
  const int ranks = GENERATE(2, 3, 4, 5, 8, 9, 64);
  std::set<std::pair<int, int>> met;
  for (int round = 0; round < num_rounds(ranks); ++round) {
    for (int rank = 0; rank < ranks; ++rank) {
      const auto partner = partner_of(rank, round, ranks);
      if (!partner) continue;
      CHECK(*partner != rank);
      CHECK(partner_of(*partner, round, ranks) == rank);
      if (rank < *partner) CHECK(met.emplace(rank, *partner).second);
    }
  }
  CHECK(met.size() == static_cast<std::size_t>(ranks * (ranks - 1) / 2));
}

}  // namespace report_test
