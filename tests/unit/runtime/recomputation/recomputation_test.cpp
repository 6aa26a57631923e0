// SPDX-License-Identifier: Apache-2.0
// What a checkpoint refuses.
#include "acc/runtime/recomputation/recomputation.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>

#include <stdexcept>

#include "acc/runtime/recomputation/checkpoint_function.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace recomputation_test {

namespace {

using acc::test::error_of;

at::Tensor leaf() {
  return at::full({3}, 2.0).requires_grad_(true);
}

const std::string kDifferent =
    " (it must compute the same both times: keep train() and eval(), and all that it reads, as they were)";

}  // namespace

TEST_CASE("recomputation: an input that the function changes in place is refused at once", "[runtime]") {
  const at::Tensor counter = at::full({}, 1.0);
  const auto function = [](const at::Tensor& x, at::Tensor count) { return x.exp() * count.add_(1); };
  CHECK(error_of([&] { acc::checkpoint(function, leaf(), counter); }) ==
        "acc::checkpoint: tensor 1 of the inputs was changed in place by the function (change a copy: "
        "input.clone())");
}

TEST_CASE("recomputation: so is one that was changed before backward", "[runtime]") {
  const at::Tensor x = leaf() + 1;
  const at::Tensor y = acc::checkpoint([](const at::Tensor& one) { return one.exp(); }, x);
  x.detach().add_(1);
  CHECK(error_of([&] { y.sum().backward(); }) ==
        "acc::checkpoint: tensor 0 of the inputs was changed in place between forward and backward (change a "
        "copy: input.clone())");
}

TEST_CASE("recomputation: a function that saves fewer tensors the second time is refused", "[runtime]") {
  int calls = 0;
  const auto function = [&calls](const at::Tensor& x) { return ++calls == 1 ? x.exp().sin() : x.exp(); };
  const at::Tensor y = acc::checkpoint(function, leaf());
  CHECK(error_of([&] { y.sum().backward(); }) ==
        "acc::checkpoint: when it was called again in backward, the function saved 1 tensors for backward, "
        "not 2" +
            kDifferent);
}

TEST_CASE("recomputation: so is one that saves others", "[runtime]") {
  int calls = 0;
  const auto function = [&calls](const at::Tensor& x) {
    return (++calls == 1 ? x : x.to(at::kDouble).view({3, 1})).exp();
  };
  const at::Tensor y = acc::checkpoint(function, leaf());
  CHECK(error_of([&] { y.sum().backward(); }) ==
        "acc::checkpoint: when it was called again in backward, the function saved Double [3, 1] on cpu in "
        "place "
        "of Float [3] on cpu" +
            kDifferent);
}

TEST_CASE("recomputation: an exception of the function is that of backward", "[runtime]") {
  int calls = 0;
  const auto function = [&calls](const at::Tensor& x) {
    if (++calls == 2) throw std::runtime_error("second call");
    return x.exp();
  };
  const at::Tensor y = acc::checkpoint(function, leaf());
  CHECK_THROWS_WITH(y.sum().backward(), "second call");
  CHECK(calls == 2);
}

}  // namespace recomputation_test
