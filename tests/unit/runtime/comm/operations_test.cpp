// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/operations.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include <array>
#include <limits>
#include <map>
#include <string>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/objects.hpp"
#include "support/catch.hpp"

namespace operations_test {

TEST_CASE("operations: on one process all return their argument", "[runtime]") {
  const at::Tensor x = at::arange(3);
  CHECK(acc::detail::gather_tensor(x, nullptr).equal(x));
  CHECK(acc::detail::gather_tensor(at::full({}, 3), nullptr).sizes() == c10::IntArrayRef({1}));
  CHECK(acc::detail::reduce_tensor(x, acc::ReduceOp::max, 2, nullptr).equal(x * 2));
  CHECK(acc::detail::reduce_tensor(x, acc::ReduceOp::sum, 1, nullptr).data_ptr() != x.data_ptr());
  CHECK(acc::detail::reduce_tensor(x, acc::ReduceOp::mean, 1, nullptr).scalar_type() == at::kFloat);
  CHECK(acc::detail::broadcast_tensor(x, 0, nullptr).equal(x));
  CHECK(acc::detail::pad_tensor(x, {.pad_index = 7}, nullptr).equal(x));
  CHECK(acc::detail::gather_texts({"a", ""}, nullptr) == std::vector<std::string>{"a", ""});
  CHECK(acc::detail::broadcast_text("a", 0, nullptr) == "a");
}

TEST_CASE("objects: values are sent without loss, including infinities", "[runtime]") {
  using Object = std::map<std::string, std::vector<double>>;
  const Object object{{"a", {0.1, std::numeric_limits<double>::infinity(), -0.0}}, {"", {}}};
  CHECK(acc::ObjectText<Object>::read(acc::ObjectText<Object>::write(object)) == object);
  const std::string zero("\0x", 2);
  CHECK(acc::ObjectText<std::string>::read(acc::ObjectText<std::string>::write(zero)) == zero);
}

namespace {

// The parts of 0 to length - 1 for each of `count` processes.
std::vector<std::vector<std::size_t>> dealt(std::size_t length, std::size_t count, bool padding) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < length; ++i) all.push_back(i);
  std::vector<std::vector<std::size_t>> parts;
  for (std::size_t i = 0; i < count; ++i)
    parts.push_back(acc::detail::take_part(all, acc::detail::part_of_process(length, i, count, padding)));
  return parts;
}

}  // namespace

TEST_CASE("split: the first processes get one more if it cannot be divided evenly", "[runtime]") {
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
  const at::Tensor last = acc::detail::take_part(rows, acc::detail::part_of_process(3, 1, 2, true));
  CHECK(last.equal(at::arange(4, 6).reshape({1, 2}).repeat({2, 1})));
}

TEST_CASE("split: maps and tuples are split value by value, and their values must have the same length",
          "[runtime]") {
  const std::map<std::string, std::vector<int>> lists{{"a", {1, 2, 3}}, {"b", {4, 5, 6}}};
  CHECK(acc::detail::take_part(lists, {.begin = 1, .end = 3}) ==
        std::map<std::string, std::vector<int>>{{"a", {2, 3}}, {"b", {5, 6}}});
  const std::tuple mixed(std::vector<int>{1, 2, 3}, at::arange(3));
  CHECK(acc::detail::split_length(mixed) == 3);
  const auto [list, tensor] = acc::detail::take_part(mixed, {.begin = 2, .end = 3});
  CHECK(list == std::vector<int>{3});
  CHECK(tensor.equal(at::arange(2, 3)));
  CHECK_THROWS_WITH(acc::detail::split_length(std::tuple(std::vector<int>{1}, at::arange(2))),
                    "split_between_processes: all values must have the same length, but there are 1 and 2");
  const std::map<std::string, std::pair<std::array<std::vector<int>, 1>, at::Tensor>> nested{
      {"a", {{{{1, 2, 3}}}, at::arange(3)}}};
  CHECK(acc::detail::split_length(nested) == 3);
  CHECK(acc::detail::take_part(nested, {.begin = 0, .end = 2}).at("a").first[0] == std::vector<int>{1, 2});
  CHECK_THROWS_AS(acc::detail::split_length(std::map<int, std::vector<int>>{{1, {}}, {2, {1}}}), acc::Error);
}

}  // namespace operations_test
