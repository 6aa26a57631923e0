// SPDX-License-Identifier: Apache-2.0
#include "acc/report/selftest_page.hpp"

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/count.hpp"
#include "support/selftest_results.hpp"

namespace selftest_page_test {

using namespace acc;
using namespace acc::launcher;
using test::count;
using test::selftest_results;

namespace {

FailureRecord failure_of(int rank, const std::string& stderr_tail) {
  return {.rank = rank, .host = "node1", .status = "exit code 1", .stderr_tail = stderr_tail};
}

}  // namespace

TEST_CASE("selftest_page: matrices, curves beside the speed of memory, ranks and checks", "[report]") {
  const std::string page = selftest_page({.results = selftest_results(8, 4), .version = "acc 1.2.3"});
  for (const char* title : {"Outliers", "Links", "All-reduce", "Ranks", "Checks"}) {
    INFO(title);
    CHECK(count(page, fmt::format("<h2>{}</h2>", title)) == 1);
  }
  CHECK(count(page, "<svg class=\"matrix\"") == 2);
  CHECK(count(page, "<svg class=\"curve\"") == 2);
  CHECK(count(page, "class=\"level memory\"") == 1);
  CHECK(count(page, "Passed: 2 of 2 checks.") == 1);
  CHECK(count(page, "acc 1.2.3") == 1);
  CHECK(count(page, "No rank and no pair is much slower than the others.") == 1);
  CHECK(count(page, "class=\"frame\"") == 0);
}

TEST_CASE("selftest_page: outliers are framed, listed and counted", "[report]") {
  SelftestResults results = selftest_results(8, 4);
  results.links[3].latency_outlier = true;
  results.matmuls[5].outlier = true;
  results.outliers = {"rank 5 on node1 is slow to compute"};
  const std::string page = selftest_page({.results = results});
  CHECK(count(page, "class=\"frame\"") == 1);
  CHECK(count(page, "1 rank, 1 pair") == 1);
  CHECK(count(page, "rank 5 on node1 is slow to compute") == 1);
  CHECK(count(page, "<td class=\"number bad\">") == 2);
}

TEST_CASE("selftest_page: two ranks have one link, and one rank has none", "[report]") {
  const std::string two = selftest_page({.results = selftest_results(2, 2)});
  CHECK(count(two, "Ranks 0 and 1 reach each other in 10 µs, with 10 GB/s.") == 1);
  CHECK(count(two, "<svg class=\"matrix\"") == 0);
  const std::string one = selftest_page({.results = selftest_results(1, 1)});
  CHECK(count(one, "<h2>Links</h2>") == 0);
  CHECK(count(one, "<h2>All-reduce</h2>") == 0);
  CHECK(count(one, "<h2>Ranks</h2>") == 1);
}

TEST_CASE("selftest_page: 512 ranks are folded, and the page stays small", "[report]") {
  const std::string page = selftest_page({.results = selftest_results(512, 8)});
  CHECK(count(page, "has the ranks of a host") == 1);
  CHECK(count(page, "ranks 0 to 7 – ranks 504 to 511") == 2);
  CHECK(count(page, "The 64 of 512 ranks that are slowest to compute.") == 1);
  CHECK(page.size() < 2'000'000);
}

TEST_CASE("selftest_page: the verdict names the step and the rank", "[report]") {
  SelftestRun run = {.results = selftest_results(4, 2), .exit_code = 1};
  run.results.checks[1].failure = "rank 2: gather is wrong";
  CHECK(verdict_of(run) == "Failed: collectives: rank 2: gather is wrong");
  run.results.checks[1].failure.clear();
  run.results.error = "LibTorch: connection closed";
  CHECK(verdict_of(run) == "Failed: LibTorch: connection closed");
  // What the worker said that failed first, maybe on another node, is nearer to the cause.
  run.history.cause = failure_of(3, "noise\nacc-selftest: 'links' did not end within 60 s\nmore noise");
  CHECK(verdict_of(run) == "Failed: rank 3 on node1: 'links' did not end within 60 s");
  run.history.cause = failure_of(3, "acc test: rank 3: training: the weights differ");
  CHECK(verdict_of(run) == "Failed: rank 3: training: the weights differ");
}

TEST_CASE("selftest_page: a test that said nothing is a page with what the job says", "[report]") {
  SelftestRun run = {.exit_code = 7};
  run.history = {.time = {10, 12}, .hosts = {"node0"}, .exit_code = 7};
  run.history.attempts.push_back({.time = {10, 12}, .world_size = 4});
  run.history.failures = {failure_of(2, "killed")};
  run.history.cause = run.history.failures[0];
  const std::string page = selftest_page(run);
  CHECK(count(page, "acc test: 4 processes on 1 host") == 2);
  CHECK(count(page, "Failed after 2 s: rank 2 on node1 ended with exit code 1.") == 1);
  CHECK(count(page, "<h2>Failures</h2>") == 1);
  CHECK(count(page, "<h2>Outliers</h2>") == 0);
}

TEST_CASE("selftest_page: says what was not tested", "[report]") {
  SelftestResults results = {.num_processes = 2, .passed = true, .checks = {{.name = "store"}}};
  results.not_tested = "libacc (acc-selftest is not installed)";
  const std::string page = selftest_page({.results = results});
  CHECK(count(page, "<h2>Not tested</h2>\n<p>libacc (acc-selftest is not installed)</p>") == 1);
}

TEST_CASE("selftest_page: foreign text is no markup", "[report]") {
  const std::string hostile = "\"><script>alert(1)</script>";
  SelftestResults results = selftest_results(3, 1);
  results.error = results.device = results.mixed_precision = results.torch = results.not_tested = hostile;
  results.hosts = {hostile, hostile, hostile};
  results.outliers = {hostile};
  for (auto& check : results.checks) check.name = check.failure = hostile;
  const std::string page = selftest_page({.results = results, .exit_code = 1, .version = hostile});
  CHECK(count(page, "<script") == 0);
  CHECK(count(page, "&lt;script&gt;") > 10);
}

}  // namespace selftest_page_test
