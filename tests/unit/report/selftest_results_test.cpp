// SPDX-License-Identifier: Apache-2.0
#include "acc/report/selftest_results.hpp"

#include "support/catch.hpp"

namespace selftest_results_test {

using acc::launcher::parse_selftest_results;

TEST_CASE("selftest_results: what acc test --json says", "[report]") {
  const auto results =
      parse_selftest_results(R"({"schema": 1, "passed": true, "error": "", "num_processes": 2,
    "device": "cpu", "mixed_precision": "bf16", "torch": "2.11.0", "hosts": ["a", "b"],
    "checks": [{"name": "state", "passed": true, "seconds": 0.5, "failure": ""}],
    "links": [{"ranks": [0, 1], "latency_seconds": 5e-5, "bytes_per_second": 1e9, "latency_outlier": true,
               "bandwidth_outlier": false}],
    "all_reduce": [{"bytes": 4096, "seconds": 1e-5, "bus_bytes_per_second": 4e8}],
    "matmul": [{"rank": 1, "host": "b", "seconds": 0.01, "flops_per_second": 2e10, "outlier": true}],
    "memory": [{"rank": 1, "bytes_per_second": 8e9, "outlier": false}], "outliers": ["rank 1 is slow"]})");
  CHECK(results.passed);
  CHECK(results.num_processes == 2);
  CHECK(results.mixed_precision == "bf16");
  CHECK(results.host(1) == "b");
  CHECK(results.host(2).empty());
  REQUIRE(results.checks.size() == 1);
  CHECK(results.checks[0].seconds == 0.5);
  REQUIRE(results.links.size() == 1);
  CHECK(results.links[0].latency_outlier);
  CHECK_FALSE(results.links[0].bandwidth_outlier);
  REQUIRE(results.all_reduces.size() == 1);
  CHECK(results.all_reduces[0].bytes == 4096);
  REQUIRE(results.matmuls.size() == 1);
  CHECK(results.matmuls[0].outlier);
  REQUIRE(results.copies.size() == 1);
  CHECK(results.copies[0].bytes_per_second == 8e9);
  CHECK(results.outliers == std::vector<std::string>{"rank 1 is slow"});
}

TEST_CASE("selftest_results: entries that make no sense are left out", "[report]") {
  const auto results = parse_selftest_results(R"({"num_processes": -3, "hosts": [7], "checks": [1],
    "links": [{"ranks": [1, 0], "latency_seconds": 1, "bytes_per_second": 1},
              {"ranks": [0, 1], "latency_seconds": 0, "bytes_per_second": 1}, {"ranks": [0]}],
    "all_reduce": [{"bytes": 0, "seconds": 1, "bus_bytes_per_second": 1}],
    "matmul": [{"rank": "one", "seconds": 1}], "memory": [{"rank": 1, "bytes_per_second": -1}]})");
  CHECK(results.num_processes == 0);
  CHECK(results.hosts == std::vector<std::string>{""});
  CHECK(results.checks.empty());
  CHECK(results.links.empty());
  CHECK(results.all_reduces.empty());
  CHECK(results.matmuls.empty());
  CHECK(results.copies.empty());
}

TEST_CASE("selftest_results: of other text nothing is known", "[report]") {
  for (const char* text : {"", "nonsense", "[]", "{"}) {
    const auto results = parse_selftest_results(text);
    CHECK(results.num_processes == 0);
    CHECK_FALSE(results.passed);
  }
}

}  // namespace selftest_results_test
