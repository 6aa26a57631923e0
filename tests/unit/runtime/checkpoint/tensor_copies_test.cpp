// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/tensor_copies.hpp"

#include <ATen/ops/arange.h>

#include "support/catch.hpp"

namespace tensor_copies_test {

namespace {

// A copy of the tensor, by the whole use of `copies`.
at::Tensor copy_of(const at::Tensor& tensor, acc::detail::TensorCopies& copies) {
  acc::PtValue value = acc::PtDict{{"all", acc::PtTuple{{acc::PtList{tensor}}}}};
  copies.begin();
  copies.replace_in(value);
  copies.finish();
  return *value.find("all")
              ->get_if<acc::PtTuple>()
              ->items.front()
              .get_if<acc::PtList>()
              ->front()
              .get_if<at::Tensor>();
}

}  // namespace

TEST_CASE("tensor copies: a copy is contiguous, and does not change with the tensor", "[runtime]") {
  acc::detail::TensorCopies copies;
  const at::Tensor original = at::arange(6, at::kFloat).reshape({2, 3}).t().requires_grad_();
  const at::Tensor copy = copy_of(original, copies);
  CHECK(copy.is_contiguous());
  CHECK_FALSE(copy.requires_grad());
  CHECK(copy.equal(original));
  original.detach().zero_();
  CHECK(copy[2][1].item<float>() == 5);
}

TEST_CASE("tensor copies: their memory is used again if type and shape are the same", "[runtime]") {
  acc::detail::TensorCopies copies;
  const void* memory = copy_of(at::arange(6, at::kFloat), copies).const_data_ptr();
  CHECK(copy_of(at::arange(1, 7, at::kFloat), copies).const_data_ptr() == memory);
  CHECK(copy_of(at::arange(3, at::kLong), copies).equal(at::arange(3, at::kLong)));
  CHECK(copy_of(at::arange(5, at::kLong), copies).equal(at::arange(5, at::kLong)));
}

}  // namespace tensor_copies_test
