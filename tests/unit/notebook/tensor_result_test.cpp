// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/tensor_result.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace tensor_result_test {

using acc::detail::ResultText;
using acc::test::error_of;

namespace {

template <class T>
T sent(const T& value) {
  return ResultText<T>::read(ResultText<T>::write(value));
}

}  // namespace

TEST_CASE("tensor_result: a tensor arrives, also among others, and without its gradient", "[notebook]") {
  CHECK_FALSE(sent(at::Tensor()).defined());
  const at::Tensor trained = at::ones({2}).requires_grad_();
  CHECK_FALSE(sent(trained * 2).requires_grad());
  const auto both = sent(std::vector{at::ones({2}), at::eye(2)});
  REQUIRE(both.size() == 2);
  CHECK(both[1].equal(at::eye(2)));
}

TEST_CASE("tensor_result: a sparse tensor is refused in words", "[notebook]") {
  CHECK(error_of([] { sent(at::eye(2).to_sparse()); }) ==
        "notebook_launcher: a tensor that is sparse or quantized cannot be returned (return it dense)");
}

TEST_CASE("tensor_result: a tensor that is cut short is refused", "[notebook]") {
  const std::string text = ResultText<at::Tensor>::write(at::ones({2}));
  CHECK(error_of([&] {
          ResultText<at::Tensor>::read(std::string_view(text).substr(0, text.size() - 1));
        }).starts_with("notebook_launcher: what another process sent is damaged"));
}

}  // namespace tensor_result_test
