// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace report_test {

using acc::selftest::Report;

namespace {

Report good_report() {
  Report report;
  report.num_processes = 3;
  report.device = "cpu";
  report.mixed_precision = "no";
  report.checks = {{.name = "state", .seconds = 0.002}, {.name = "collectives", .seconds = 1.5}};
  report.links = {{0, 1, 20e-6, 2e9}, {0, 2, 21e-6, 2e9}, {1, 2, 19e-6, 5e8}};
  report.all_reduces = {{4096, 50e-6, 109e6}, {1 << 20, 2e-3, 0.7e9}};
  report.matmuls = {{0, "a", 0.010, 27e9}, {1, "a", 0.011, 24e9}, {2, "b", 0.010, 27e9}};
  return report;
}

}  // namespace

TEST_CASE("report: the text has each check, the measurements and the result", "[selftest]") {
  const Report report = good_report();
  CHECK(check_text(report.checks[0]) == "state                    ok (2.0 ms)\n");
  CHECK(summary_text(report) ==
        "links                    all 3 pairs reach each other; the slowest, 0 and 2: 21 us, 2.0 GB/s\n"
        "all-reduce of 4 KiB      50 us, 109 MB/s\n"
        "all-reduce of 1 MiB      2.0 ms, 700 MB/s\n"
        "matmul, rank 0           10.0 ms, 27.0 GFLOP/s, a\n"
        "matmul, rank 1           11.0 ms, 24.0 GFLOP/s, a\n"
        "matmul, rank 2           10.0 ms, 27.0 GFLOP/s, b\n"
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
  CHECK(outliers(report).empty());
  report.matmuls[1].seconds = 0.025;
  report.links[2].latency_seconds = 200e-6;
  CHECK(outliers(report) ==
        std::vector<std::string>{"rank 1 on a is slow to compute: 2.5 times the others' time",
                                 "ranks 1 and 2 have a slow connection: 9.5 times the other pairs' time"});
  CHECK(summary_text(report).find("outlier                  rank 1 on a is slow to compute") !=
        std::string::npos);
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
  CHECK(json["outliers"].empty());
}

using acc::selftest::find_outlier;
using acc::selftest::num_rounds;
using acc::selftest::partner_of;

TEST_CASE("outlier: the one that takes much longer than the median of the others", "[selftest]") {
  const auto found = find_outlier(std::vector{1.0, 1.1, 3.0, 0.9}, 1.5);
  REQUIRE(found);
  CHECK(found->index == 2);
  CHECK(found->factor == 3.0);
  CHECK(find_outlier(std::vector{1.0, 2.0}, 1.5)->index == 1);
}

TEST_CASE("outlier: there is none among equals, or in one", "[selftest]") {
  CHECK_FALSE(find_outlier(std::vector{1.0, 1.1, 1.4, 0.9}, 1.5));
  CHECK_FALSE(find_outlier(std::vector{5.0}, 1.5));
  CHECK_FALSE(find_outlier({}, 1.5));
}

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
