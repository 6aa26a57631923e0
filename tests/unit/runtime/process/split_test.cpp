// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/split.hpp"

#include <ATen/ops/arange.h>

#include <array>
#include <string>

#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace {

// What each of `count` processes gets of 0..length-1.
std::vector<std::vector<std::size_t>> dealt(std::size_t length, std::size_t count, bool padding) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < length; ++i) all.push_back(i);
  std::vector<std::vector<std::size_t>> parts;
  for (std::size_t i = 0; i < count; ++i)
    parts.push_back(acc::take(all, acc::split(length, i, count, padding)));
  return parts;
}

}  // namespace

TEST_CASE("split: the first processes get one more where it does not divide", "[runtime]") {
  CHECK(dealt(4, 2, false) == std::vector<std::vector<std::size_t>>{{0, 1}, {2, 3}});
  CHECK(dealt(5, 3, false) == std::vector<std::vector<std::size_t>>{{0, 1}, {2, 3}, {4}});
  CHECK(dealt(1, 3, false) == std::vector<std::vector<std::size_t>>{{0}, {}, {}});
  CHECK(dealt(0, 2, true) == std::vector<std::vector<std::size_t>>{{}, {}});
}

TEST_CASE("split: padding repeats the last element until all have as many as the first", "[runtime]") {
  CHECK(dealt(5, 3, true) == std::vector<std::vector<std::size_t>>{{0, 1}, {2, 3}, {4, 4}});
  CHECK(dealt(1, 3, true) == std::vector<std::vector<std::size_t>>{{0}, {0}, {0}});
  CHECK(dealt(4, 2, true) == dealt(4, 2, false));
  const at::Tensor rows = at::arange(6).reshape({3, 2});
  const at::Tensor last = acc::take(rows, acc::split(3, 1, 2, true));
  CHECK(last.equal(at::arange(4, 6).reshape({1, 2}).repeat({2, 1})));
}

TEST_CASE("split: maps and tuples are cut value by value, and their values have one length", "[runtime]") {
  const std::map<std::string, std::vector<int>> lists{{"a", {1, 2, 3}}, {"b", {4, 5, 6}}};
  CHECK(acc::take(lists, {.begin = 1, .end = 3}) ==
        std::map<std::string, std::vector<int>>{{"a", {2, 3}}, {"b", {5, 6}}});
  const std::tuple mixed(std::vector<int>{1, 2, 3}, at::arange(3));
  CHECK(acc::split_length(mixed) == 3);
  const auto [list, tensor] = acc::take(mixed, {.begin = 2, .end = 3});
  CHECK(list == std::vector<int>{3});
  CHECK(tensor.equal(at::arange(2, 3)));
  CHECK_THROWS_WITH(acc::split_length(std::tuple(std::vector<int>{1}, at::arange(2))),
                    "split_between_processes: all values must have the same length, but there are 1 and 2");
  const std::map<std::string, std::pair<std::array<std::vector<int>, 1>, at::Tensor>> nested{
      {"a", {{{{1, 2, 3}}}, at::arange(3)}}};
  CHECK(acc::split_length(nested) == 3);
  CHECK(acc::take(nested, {.begin = 0, .end = 2}).at("a").first[0] == std::vector<int>{1, 2});
  CHECK_THROWS_AS(acc::split_length(std::map<int, std::vector<int>>{{1, {}}, {2, {1}}}), acc::Error);
}
