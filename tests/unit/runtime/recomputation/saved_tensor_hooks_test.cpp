// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/recomputation/saved_tensor_hooks.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>

#include <thread>

#include "support/catch.hpp"

namespace saved_tensor_hooks_test {

namespace {

at::Tensor leaf(double value) {
  return at::full({2}, value).requires_grad_(true);
}

// Counts what passes, and multiplies it on its way back.
struct CountingHooks {
  int packed = 0;
  int unpacked = 0;
  double factor = 1;

  acc::detail::Pack pack() {
    return [this](const at::Tensor& tensor) -> acc::detail::Unpack {
      ++packed;
      // A result has the graph that saves it, and would keep itself.
      return [this, saved = tensor.detach()] {
        ++unpacked;
        return saved * factor;
      };
    };
  }
};

}  // namespace

TEST_CASE("saved_tensor_hooks: what operators save passes the hooks while they exist", "[runtime]") {
  CountingHooks counts{.factor = 10};
  const at::Tensor x = leaf(3);
  at::Tensor square;
  {
    const acc::detail::SavedTensorHooks hooks(counts.pack());
    square = x.mul(x);
  }
  const at::Tensor plain = x.mul(x);
  CHECK(counts.packed == 2);
  square.sum().backward();
  CHECK(counts.unpacked == 2);
  CHECK(x.grad()[0].item<double>() == 60);
  plain.sum().backward();
  CHECK(x.grad()[0].item<double>() == 66);
  CHECK(counts.packed == 2);
}

TEST_CASE("saved_tensor_hooks: of several the last one is in effect", "[runtime]") {
  CountingHooks outer;
  CountingHooks inner;
  const acc::detail::SavedTensorHooks around(outer.pack());
  const at::Tensor x = leaf(3);
  {
    const acc::detail::SavedTensorHooks within(inner.pack());
    x.exp();
  }
  CHECK(inner.packed == 1);
  CHECK(outer.packed == 0);
  x.exp();
  CHECK(outer.packed == 1);
}

TEST_CASE("saved_tensor_hooks: other threads save as ever", "[runtime]") {
  CountingHooks counts;
  const acc::detail::SavedTensorHooks hooks(counts.pack());
  std::thread([] { leaf(3).exp(); }).join();
  CHECK(counts.packed == 0);
}

}  // namespace saved_tensor_hooks_test
