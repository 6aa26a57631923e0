// SPDX-License-Identifier: Apache-2.0
#include "outliers.hpp"

#include "support/catch.hpp"

namespace outliers_test {

using acc::selftest::find_outliers;
using acc::selftest::Outlier;

TEST_CASE("outliers: values far above the median, the greatest first", "[selftest]") {
  CHECK(find_outliers(std::vector{1.0, 1.1, 3.0, 0.9}, 1.5) == std::vector<Outlier>{{2, 3.0}});
  CHECK(find_outliers(std::vector{1.0, 4.0, 1.1, 8.0, 1.0, 0.9, 1.0}, 1.5) ==
        std::vector<Outlier>{{3, 8.0}, {1, 4.0}});
}

TEST_CASE("outliers: of two values the greater can be one", "[selftest]") {
  CHECK(find_outliers(std::vector{2.0, 1.0}, 1.5) == std::vector<Outlier>{{0, 2.0}});
}

TEST_CASE("outliers: there is none among equals, in one value, or in none", "[selftest]") {
  CHECK(find_outliers(std::vector{1.0, 1.1, 1.4, 0.9}, 1.5).empty());
  CHECK(find_outliers(std::vector{5.0}, 1.5).empty());
  CHECK(find_outliers({}, 1.5).empty());
}

TEST_CASE("outliers: where values differ by much anyway, only those beyond that are outliers", "[selftest]") {
  CHECK(find_outliers(std::vector{1.0, 1.2, 1.5, 1.8, 2.0, 2.3, 3.5}, 1.5).empty());
  CHECK(find_outliers(std::vector{1.0, 1.2, 1.5, 1.8, 2.0, 2.3, 9.0}, 1.5).size() == 1);
}

}  // namespace outliers_test
