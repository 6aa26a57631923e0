// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/result_text.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>

#include <limits>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace result_text_test {

using namespace acc;
using namespace acc::detail;
using namespace acc::test;

namespace {

template <class T>
T sent(const T& value) {
  return ResultText<T>::read(ResultText<T>::write(value));
}

bool arrives(const at::Tensor& tensor) {
  const at::Tensor result = sent(tensor);
  return result.scalar_type() == tensor.scalar_type() && result.equal(tensor);
}

}  // namespace

TEST_CASE("result_text: numbers and strings arrive as they are", "[notebook]") {
  CHECK(sent(std::int64_t{-5}) == -5);
  CHECK(sent(0.1) == 0.1);
  CHECK(sent(std::numeric_limits<double>::infinity()) == std::numeric_limits<double>::infinity());
  CHECK(sent(true));
  CHECK(sent(std::string("a\0b", 3)) == std::string("a\0b", 3));
  CHECK(sent(std::string()).empty());
}

TEST_CASE("result_text: vectors arrive whole, also empty and nested ones", "[notebook]") {
  using Numbers = std::vector<double>;
  using Words = std::vector<std::string>;
  CHECK(sent(Numbers{1.5, -2}) == Numbers{1.5, -2});
  CHECK(sent(Numbers()).empty());
  CHECK(sent(Words{"a", "", "c"}) == Words{"a", "", "c"});
  CHECK(sent(std::vector<Numbers>{{}, {1, 2}, {}}) == std::vector<Numbers>{{}, {1, 2}, {}});
  CHECK(sent(std::vector<bool>{true, false, true}) == std::vector<bool>{true, false, true});
}

TEST_CASE("result_text: tensors keep type, shape and values", "[notebook]") {
  CHECK(arrives(at::arange(6).reshape({2, 3})));
  CHECK(arrives(at::ones({}, at::kBFloat16)));
  CHECK(arrives(at::ones({3, 0, 2}, at::kBool)));
  CHECK(arrives(at::arange(6, at::kFloat).reshape({2, 3}).t()));
  CHECK(arrives(at::ones({2}, at::kComplexFloat).conj()));
  CHECK_FALSE(sent(at::Tensor()).defined());
  const at::Tensor trained = at::ones({2}).requires_grad_();
  CHECK_FALSE(sent(trained * 2).requires_grad());
  const auto both = sent(std::vector{at::ones({2}), at::eye(2)});
  REQUIRE(both.size() == 2);
  CHECK(both[1].equal(at::eye(2)));
}

TEST_CASE("result_text: a sparse tensor is refused in words", "[notebook]") {
  CHECK(error_of([] { sent(at::eye(2).to_sparse()); }) ==
        "notebook_launcher: a tensor that is sparse or quantized cannot be returned (return it dense)");
}

}  // namespace result_text_test
