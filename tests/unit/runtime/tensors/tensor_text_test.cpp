// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tensors/tensor_text.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>

#include "acc/runtime/tensors/tensor_bytes.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace tensor_text_test {

using acc::detail::tensor_of_text;
using acc::detail::text_of_tensor;
using acc::detail::to_text;
using acc::test::error_of;

namespace {

bool arrives(const at::Tensor& tensor) {
  const at::Tensor result = tensor_of_text(text_of_tensor(tensor), "here");
  return result.scalar_type() == tensor.scalar_type() && result.equal(tensor);
}

}  // namespace

TEST_CASE("tensor_text: tensors keep type, shape and values", "[runtime]") {
  CHECK(arrives(at::arange(6).reshape({2, 3})));
  CHECK(arrives(at::ones({}, at::kBFloat16)));
  CHECK(arrives(at::ones({3, 0, 2}, at::kBool)));
  CHECK(arrives(at::arange(6, at::kFloat).reshape({2, 3}).t()));
  CHECK(arrives(at::ones({2}, at::kComplexFloat).conj()));
  CHECK_FALSE(tensor_of_text(text_of_tensor(at::Tensor()), "here").defined());
  CHECK_FALSE(tensor_of_text(text_of_tensor(at::ones({2}).requires_grad_()), "here").requires_grad());
}

TEST_CASE("tensor_text: a type that LibTorch does not have, or of another size, is refused", "[runtime]") {
  const auto refusal = [](std::int64_t type, std::size_t element_size, const std::string& elements) {
    const std::string text = to_text(acc::detail::TensorBytes{
        .type = type, .element_size = element_size, .sizes = {1}, .elements = elements});
    return error_of([&] { tensor_of_text(text, "here"); });
  };
  const std::string damaged = "here: what another process sent is damaged";
  const auto number = [](at::ScalarType type) { return static_cast<std::int64_t>(type); };
  CHECK(refusal(number(at::kFloat), 4, "1234") == "no error");
  CHECK(refusal(number(at::kFloat), 8, "12345678").starts_with(damaged));
  CHECK(refusal(number(at::kQInt8), 1, "1").starts_with(damaged));
  CHECK(refusal(number(at::ScalarType::Undefined), 1, "1").starts_with(damaged));
  CHECK(refusal(number(at::ScalarType::NumOptions), 1, "1").starts_with(damaged));
  CHECK(refusal(-1, 1, "1").starts_with(damaged));
}

}  // namespace tensor_text_test
