// SPDX-License-Identifier: Apache-2.0
#include "acc/top/rate_curve.hpp"

#include "support/catch.hpp"

namespace rate_curve_test {

using namespace acc::launcher;
using namespace std::chrono_literals;

TEST_CASE("rate_curve: steps a second in equal parts of the time, the oldest first", "[top]") {
  const std::vector<StepHistory::Sample> samples = {
      {.age = 8s, .steps = 10}, {.age = 6s, .steps = 20}, {.age = 4s, .steps = 40}, {.age = 0s, .steps = 44}};
  const RateCurve curve = rate_curve(samples, 10s, 5);
  REQUIRE(curve.size() == 5);
  CHECK_FALSE(curve[0]);
  CHECK_FALSE(curve[1]);
  CHECK(curve[2] == 5);
  CHECK(curve[3] == 10);
  CHECK(curve[4] == 1);
  CHECK(highest_of(curve) == 10);
}

TEST_CASE("rate_curve: several samples in a part are its mean", "[top]") {
  const std::vector<StepHistory::Sample> samples = {
      {.age = 3s, .steps = 0}, {.age = 2s, .steps = 1}, {.age = 1s, .steps = 1}, {.age = 0s, .steps = 5}};
  CHECK(rate_curve(samples, 10s, 1) == RateCurve{5.0 / 3});
}

TEST_CASE("rate_curve: a rank that counts anew after a restart was not slow", "[top]") {
  const std::vector<StepHistory::Sample> samples = {
      {.age = 3s, .steps = 900}, {.age = 2s, .steps = 910}, {.age = 1s, .steps = 4}, {.age = 0s, .steps = 9}};
  const RateCurve curve = rate_curve(samples, 4s, 4);
  CHECK(curve[2] == 10);
  CHECK(curve[3] == 5);
}

TEST_CASE("rate_curve: what is older than the time does not count", "[top]") {
  CHECK_FALSE(highest_of(rate_curve({{.age = 90s, .steps = 1}, {.age = 80s, .steps = 9}}, 60s, 4)));
  CHECK_FALSE(highest_of(rate_curve({}, 60s, 4)));
}

}  // namespace rate_curve_test
