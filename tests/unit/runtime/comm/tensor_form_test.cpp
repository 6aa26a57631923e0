// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/tensor_form.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <array>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace tensor_form_test {

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

}  // namespace tensor_form_test
