// SPDX-License-Identifier: Apache-2.0
#include "acc/report/log_scale.hpp"

#include <cmath>

#include "support/catch.hpp"

namespace log_scale_test {

using namespace acc::launcher;

TEST_CASE("log_scale: logarithms are those of libm", "[report]") {
  for (const double value : {1e-300, 3.3e-6, 0.5, 1.0, 1.9999, 2.0, 12345.678, 1e300}) {
    INFO(value);
    CHECK(std::abs(log2_of(value) - std::log2(value)) <= 1e-12 * (1 + std::abs(std::log2(value))));
  }
}

TEST_CASE("log_scale: roots, powers, and powers of ten", "[report]") {
  CHECK(std::abs(root_of(256, 8) - 2) < 1e-12);
  CHECK(root_of(1, 8) == 1);
  CHECK(power_of(3, 0) == 1);
  CHECK(power_of(3, 4) == 81);
  CHECK(power_of_ten_below(1) == 1);
  CHECK(power_of_ten_below(4.2e9) == 1e9);
  CHECK(std::abs(power_of_ten_below(0.00042) - 0.0001) < 1e-16);
}

}  // namespace log_scale_test
