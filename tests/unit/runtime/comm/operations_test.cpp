// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/operations.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <array>
#include <limits>
#include <map>
#include <string>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/objects.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace operations_test {

TEST_CASE("tensor_form: a written form gives a tensor of the same type and shape", "[runtime]") {
  for (const at::Tensor& tensor : {at::ones({2, 3}, at::kHalf), at::ones({}, at::kLong), at::empty({0, 4})}) {
    std::array<std::int64_t, acc::detail::kFormSize> numbers = {};
    acc::detail::write_form(tensor, numbers.data(), "gather");
    const at::Tensor made_tensor = acc::detail::empty_of_form(numbers.data());
    CHECK(made_tensor.sizes() == tensor.sizes());
    CHECK(made_tensor.scalar_type() == tensor.scalar_type());
  }
}

TEST_CASE("tensor_form: numbers of an earlier form are overwritten", "[runtime]") {
  std::array<std::int64_t, acc::detail::kFormSize> numbers = {};
  std::array<std::int64_t, acc::detail::kFormSize> fresh = {};
  acc::detail::write_form(at::ones({2, 3, 4}), numbers.data(), "gather");
  acc::detail::write_form(at::ones({5}), numbers.data(), "gather");
  acc::detail::write_form(at::ones({5}), fresh.data(), "gather");
  CHECK(numbers == fresh);
  CHECK(acc::detail::form_text(numbers.data()) == "Float [5]");
}

TEST_CASE("tensor_form: tensors that cannot be sent are refused", "[runtime]") {
  std::array<std::int64_t, acc::detail::kFormSize> numbers = {};
  const auto said = [&](const at::Tensor& tensor) {
    return acc::test::error_of([&] { acc::detail::write_form(tensor, numbers.data(), "gather"); });
  };
  CHECK(said({}) == "gather: an undefined tensor cannot be sent");
  CHECK(said(at::ones({2}).to_sparse()) == "gather: a sparse tensor cannot be sent");
  CHECK(said(at::ones({2}, at::kMeta)) == "gather: a tensor of the meta device cannot be sent");
  CHECK(said(at::ones(std::vector<std::int64_t>(17, 1))) ==
        "gather: a tensor with more than 16 dimensions cannot be sent");
}

TEST_CASE("tensor_form: numbers of another rank that are no form are refused", "[runtime]") {
  using Form = std::array<std::int64_t, acc::detail::kFormSize>;
  const auto said = [](const Form& numbers) {
    return acc::test::error_of([&] { acc::detail::require_form(numbers.data(), "gather"); });
  };
  Form form = {};
  acc::detail::write_form(at::ones({2, 3}), form.data(), "gather");
  CHECK(said(form) == "no error");
  const auto but = [&](std::size_t index, std::int64_t number) {
    Form changed = form;
    changed.at(index) = number;
    return said(changed);
  };
  const std::string refused =
      "gather: what another rank sent is something else than what is expected here (all ranks must run the "
      "same "
      "version of the program, and make the same calls in the same order)";
  for (const std::int64_t type : {-1, 1000}) CHECK(but(0, type) == refused);
  for (const std::int64_t dimensions : {-1, 1, 17})
    CHECK(but(1, dimensions) == refused);  // 1: a size is left over
  CHECK(but(acc::detail::kFormSizes, -2) == refused);
  CHECK(but(acc::detail::kFormSizes, 0) == "no error");
  CHECK(but(acc::detail::kFormSize - 1, 1) == refused);
}

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
