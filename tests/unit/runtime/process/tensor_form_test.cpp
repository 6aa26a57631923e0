// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/tensor_form.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <array>

#include "support/catch.hpp"
#include "support/errors.hpp"

TEST_CASE("tensor_form: what is written makes a tensor of the same type and shape", "[runtime]") {
  for (const at::Tensor& tensor : {at::ones({2, 3}, at::kHalf), at::ones({}, at::kLong), at::empty({0, 4})}) {
    std::array<std::int64_t, acc::kFormSize> numbers = {};
    acc::write_form(tensor, numbers.data(), "gather");
    const at::Tensor made = acc::empty_of_form(numbers.data());
    CHECK(made.sizes() == tensor.sizes());
    CHECK(made.scalar_type() == tensor.scalar_type());
  }
}

TEST_CASE("tensor_form: numbers of another tensor do not shine through", "[runtime]") {
  std::array<std::int64_t, acc::kFormSize> numbers = {};
  std::array<std::int64_t, acc::kFormSize> fresh = {};
  acc::write_form(at::ones({2, 3, 4}), numbers.data(), "gather");
  acc::write_form(at::ones({5}), numbers.data(), "gather");
  acc::write_form(at::ones({5}), fresh.data(), "gather");
  CHECK(numbers == fresh);
  CHECK(acc::form_text(numbers.data()) == "Float [5]");
}

TEST_CASE("tensor_form: more dimensions than can be sent are refused", "[runtime]") {
  std::array<std::int64_t, acc::kFormSize> numbers = {};
  const at::Tensor deep = at::ones(std::vector<std::int64_t>(17, 1));
  CHECK(acc::test::error_of([&] { acc::write_form(deep, numbers.data(), "gather"); }) ==
        "gather: a tensor has 17 dimensions, and at most 16 can be sent");
}
