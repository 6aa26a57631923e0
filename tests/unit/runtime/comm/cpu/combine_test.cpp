// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/combine.hpp"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/catch.hpp"

namespace combine_test {

namespace {

using acc::detail::Combination;
using c10::ScalarType;

template <class T>
T combined(ScalarType type, Combination combination, T first, T second) {
  acc::detail::combine_function(type, combination)(&first, &first, &second, 1);
  return first;
}

}  // namespace

TEST_CASE("combine: each type has a sum, a product, a minimum and a maximum", "[runtime]") {
  CHECK(combined(ScalarType::Float, Combination::sum, 1.5F, 2.0F) == 3.5F);
  CHECK(combined(ScalarType::Double, Combination::product, 1.5, 2.0) == 3.0);
  CHECK(combined(ScalarType::Long, Combination::min, std::int64_t{-3}, std::int64_t{2}) == -3);
  CHECK(combined(ScalarType::Int, Combination::max, -3, 2) == 2);
  CHECK(combined(ScalarType::Char, Combination::min, std::int8_t{-3}, std::int8_t{2}) == -3);
  CHECK(combined(ScalarType::Half, Combination::product, c10::Half(1.5F), c10::Half(2.0F)) == 3.0F);
  CHECK(combined(ScalarType::BFloat16, Combination::max, c10::BFloat16(1.5F), c10::BFloat16(2.0F)) == 2.0F);
  CHECK(acc::detail::combine_function(ScalarType::Bool, Combination::sum) == nullptr);
  CHECK(acc::detail::combine_function(ScalarType::ComplexFloat, Combination::sum) == nullptr);
}

TEST_CASE("combine: integers wrap around, and half is rounded from float", "[runtime]") {
  CHECK(combined(ScalarType::Byte, Combination::sum, std::uint8_t{255}, std::uint8_t{2}) == 1);
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  CHECK(combined(ScalarType::Long, Combination::sum, kLargest, std::int64_t{1}) ==
        std::numeric_limits<std::int64_t>::min());
  // Halfway between two numbers: the even one.
  CHECK(combined(ScalarType::Half, Combination::sum, c10::Half(2048.0F), c10::Half(1.0F)) == 2048.0F);
  CHECK(combined(ScalarType::Half, Combination::sum, c10::Half(2050.0F), c10::Half(1.0F)) == 2052.0F);
}

TEST_CASE("combine: a NaN on either side is the minimum and the maximum", "[runtime]") {
  const float nan = std::nanf("");
  for (const Combination combination : {Combination::min, Combination::max}) {
    CHECK(std::isnan(combined(ScalarType::Float, combination, nan, 1.0F)));
    CHECK(std::isnan(combined(ScalarType::Float, combination, 1.0F, nan)));
    CHECK(std::isnan(
        static_cast<float>(combined(ScalarType::Half, combination, c10::Half(nan), c10::Half(1.0F)))));
  }
}

TEST_CASE("combine: elements are divided as tensors are", "[runtime]") {
  std::vector<float> values{3, 1};
  acc::detail::divide_function(ScalarType::Float)(values.data(), 3, values.size());
  CHECK(values == std::vector<float>{1.0F, 1.0F / 3.0F});
  CHECK(acc::detail::divide_function(ScalarType::Int) == nullptr);
}

}  // namespace combine_test
