// SPDX-License-Identifier: Apache-2.0
#include "outlier.hpp"

#include <set>
#include <utility>
#include <vector>

#include "support/catch.hpp"

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

TEST_CASE("partner_of: over all rounds everyone meets everyone once, two at a time", "[selftest]") {
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
