// SPDX-License-Identifier: Apache-2.0
#include "acc/report/link_matrix.hpp"

#include <cmath>

#include "support/catch.hpp"
#include "support/selftest_results.hpp"

namespace link_matrix_test {

using namespace acc;
using namespace acc::launcher;
using test::selftest_results;

namespace {

bool is_near(double value, double expected) {
  return std::abs(value - expected) < 1e-9 * expected;
}

}  // namespace

TEST_CASE("link_matrix: up to 64 ranks have a row each", "[report]") {
  const auto groups = rank_groups(selftest_results(64, 8));
  REQUIRE(groups.size() == 64);
  CHECK(groups[9] == RankGroup{9, 9, "node1"});
}

TEST_CASE("link_matrix: more ranks share a row with those of their host", "[report]") {
  const auto groups = rank_groups(selftest_results(72, 8));
  REQUIRE(groups.size() == 9);
  CHECK(groups[1] == RankGroup{8, 15, "node1"});
}

TEST_CASE("link_matrix: where hosts are too many, or one, consecutive ranks share a row", "[report]") {
  SelftestResults results = selftest_results(20, 2);
  CHECK(rank_groups(results, 8).size() == 7);
  CHECK(rank_groups(results, 8)[1] == RankGroup{3, 5, "node1"});
  results = selftest_results(20, 20);
  CHECK(rank_groups(results, 8).size() == 7);
}

TEST_CASE("link_matrix: is symmetric, and has no diagonal of single ranks", "[report]") {
  SelftestResults results = selftest_results(4, 2);
  results.links[2].latency_outlier = true;  // of ranks 0 and 3
  const LinkMatrix matrix = link_matrix(results, rank_groups(results), LinkFigure::latency);
  CHECK_FALSE(matrix.is_folded());
  CHECK(matrix.cell(0, 1).value == 10e-6);
  CHECK(matrix.cell(3, 0).value == 40e-6);
  CHECK(matrix.cell(3, 0).outliers == 1);
  CHECK(matrix.cell(0, 3).outliers == 1);
  CHECK(matrix.cell(1, 2).outliers == 0);
  CHECK_FALSE(matrix.cell(2, 2).value);
}

TEST_CASE("link_matrix: a cell of groups is the median of their links, and counts outliers", "[report]") {
  SelftestResults results = selftest_results(6, 3);
  for (SelftestResults::Link& link : results.links) {
    link.bandwidth_outlier = link.first == 0 && link.second == 5;
    if (link.bandwidth_outlier) link.bytes_per_second = 1e6;
  }
  const LinkMatrix matrix = link_matrix(results, rank_groups(results, 2), LinkFigure::bandwidth);
  REQUIRE(matrix.groups.size() == 2);
  CHECK(matrix.is_folded());
  CHECK(matrix.cell(0, 0).value == 10e9);
  CHECK(matrix.cell(1, 0).value == 1e9);
  CHECK(matrix.cell(1, 0).links == 9);
  CHECK(matrix.cell(1, 0).outliers == 1);
}

TEST_CASE("link_matrix: classes divide the values by equal factors, and outliers do not stretch them",
          "[report]") {
  SelftestResults results = selftest_results(4, 2);
  results.links[1].latency_seconds = 1;
  results.links[1].latency_outlier = true;
  const auto matrix = [&] { return link_matrix(results, rank_groups(results), LinkFigure::latency); };
  const std::vector<double> bounds = class_bounds(matrix(), LinkFigure::latency, 2);
  REQUIRE(bounds.size() == 1);
  CHECK(is_near(bounds[0], 20e-6));
  for (SelftestResults::Link& link : results.links) link.latency_seconds = 10e-6;
  CHECK(is_near(class_bounds(matrix(), LinkFigure::latency, 8).front(), 11e-6));
  CHECK(class_bounds({}, LinkFigure::latency, 8).size() == 7);
}

TEST_CASE("link_matrix: classes of bandwidths begin with the highest", "[report]") {
  const SelftestResults results = selftest_results(4, 2);
  const LinkMatrix matrix = link_matrix(results, rank_groups(results), LinkFigure::bandwidth);
  const std::vector<double> bounds = class_bounds(matrix, LinkFigure::bandwidth, 2);
  REQUIRE(bounds.size() == 1);
  CHECK(bounds[0] > cost_of(10e9, LinkFigure::bandwidth));
  CHECK(bounds[0] < cost_of(1e9, LinkFigure::bandwidth));
}

}  // namespace link_matrix_test
