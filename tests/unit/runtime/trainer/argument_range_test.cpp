// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/argument_range.hpp"

#include <limits>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace argument_range_test {

using acc::detail::Range;
using acc::test::error_of;

namespace {

std::string refusal(Range range, double value) {
  return error_of([&] { acc::detail::require_in(range, value, "rate"); });
}

}  // namespace

TEST_CASE("argument_range: a number outside of its range is refused with the range", "[runtime]") {
  CHECK(refusal(Range::positive, 0) == "rate: must be greater than 0");
  CHECK(refusal(Range::not_negative, -1e-9) == "rate: must not be negative");
  CHECK(refusal(Range::below_one, 1) == "rate: must be at least 0 and less than 1");
}

TEST_CASE("argument_range: the bounds are in their ranges", "[runtime]") {
  CHECK(refusal(Range::positive, 1e-300) == "no error");
  CHECK(refusal(Range::not_negative, 0) == "no error");
  CHECK(refusal(Range::below_one, 0) == "no error");
}

TEST_CASE("argument_range: NaN is in none", "[runtime]") {
  const auto range = GENERATE(Range::positive, Range::not_negative, Range::below_one);
  CHECK(refusal(range, std::numeric_limits<double>::quiet_NaN()) != "no error");
}

}  // namespace argument_range_test
