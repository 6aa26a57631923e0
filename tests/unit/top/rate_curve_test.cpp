// SPDX-License-Identifier: Apache-2.0
#include "acc/top/rate_curve.hpp"

#include "support/catch.hpp"

namespace rate_curve_test {

using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

double at(const RateCurve& curve, std::size_t part) {
  REQUIRE(curve.at(part));
  return *curve[part];
}

}  // namespace

TEST_CASE("rate_curve: steps a second in equal parts of the time, the oldest first", "[top]") {
  const std::vector<StepHistory::Sample> samples = {
      {.age = 8s, .steps = 10}, {.age = 6s, .steps = 20}, {.age = 4s, .steps = 40}, {.age = 0s, .steps = 44}};
  const RateCurve curve = rate_curve(samples, 10s, 5);
  REQUIRE(curve.size() == 5);
  CHECK_FALSE(curve[0]);
  CHECK(at(curve, 1) == Approx(5));
  CHECK(at(curve, 2) == Approx(10));
  CHECK(at(curve, 3) == Approx(1));
  CHECK(at(curve, 4) == Approx(1));
  CHECK(*highest_of(curve) == Approx(10));
}

TEST_CASE("rate_curve: a long step counts over its whole time, however narrow the parts are", "[top]") {
  std::vector<StepHistory::Sample> samples;
  // A step each 12 s, the last one 5 s ago.
  for (int age = 120; age >= 0; --age) {
    const int passed = 127 - age;
    samples.push_back({.age = age * 1s, .steps = passed / 12, .since_step = (passed % 12) * 1s});
  }
  for (const std::size_t parts : {10U, 78U, 198U}) {
    const RateCurve curve = rate_curve(samples, 120s, parts);
    CHECK(*highest_of(curve) == Approx(1.0 / 12));
    CHECK(at(curve, parts / 2) == Approx(1.0 / 12));
  }
}

TEST_CASE("rate_curve: a rank that stands still has the rate 0", "[top]") {
  const std::vector<StepHistory::Sample> samples = {{.age = 30s, .steps = 1},
                                                    {.age = 28s, .steps = 3},
                                                    {.age = 14s, .steps = 3, .since_step = 14s},
                                                    {.age = 0s, .steps = 3, .since_step = 28s}};
  const RateCurve curve = rate_curve(samples, 28s, 4);
  CHECK(at(curve, 0) == 0);
  CHECK(at(curve, 3) == 0);
}

TEST_CASE("rate_curve: a restart is not a slow step, whatever the counts are", "[top]") {
  for (const std::int64_t first : {4, 920}) {
    const std::vector<StepHistory::Sample> samples = {{.age = 4s, .steps = 900, .process = 1},
                                                      {.age = 3s, .steps = 910, .process = 1},
                                                      {.age = 1s, .steps = first, .process = 2},
                                                      {.age = 0s, .steps = first + 5, .process = 2}};
    const RateCurve curve = rate_curve(samples, 4s, 4);
    CHECK(at(curve, 0) == Approx(10));
    CHECK_FALSE(curve[1]);
    CHECK_FALSE(curve[2]);
    CHECK(at(curve, 3) == Approx(5));
  }
}

TEST_CASE("rate_curve: what is older than the time does not count", "[top]") {
  CHECK_FALSE(highest_of(rate_curve({{.age = 90s, .steps = 1}, {.age = 80s, .steps = 9}}, 60s, 4)));
  CHECK_FALSE(highest_of(rate_curve({}, 60s, 4)));
  CHECK(rate_curve({{.age = 1s}}, 60s, 0).empty());
}

}  // namespace rate_curve_test
