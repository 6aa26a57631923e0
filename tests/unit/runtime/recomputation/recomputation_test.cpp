// SPDX-License-Identifier: Apache-2.0
// What a checkpoint refuses, and functions that catch what ends their second pass.
#include "acc/runtime/recomputation/recomputation.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/modules/batchnorm.h>

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

TEST_CASE("recomputation: a tensor that is changed in place after it was saved is refused", "[runtime]") {
  const at::Tensor y = acc::checkpoint(
      [](const at::Tensor& x) {
        at::Tensor h = x.exp();
        h += x;
        return h.tanh();
      },
      leaf());
  CHECK(error_of([&] { y.sum().backward(); }) ==
        "acc::checkpoint: a tensor that backward needs was changed in place by the function (change a copy: "
        "y = y + x instead of y += x)");
}

TEST_CASE("recomputation: a captured tensor that is changed before backward is refused", "[runtime]") {
  const at::Tensor factor = at::full({3}, 3.0);
  const at::Tensor y = acc::checkpoint([factor](const at::Tensor& x) { return (x * factor).exp(); }, leaf());
  factor.add_(1);
  CHECK(error_of([&] { y.sum().backward(); }) ==
        "acc::checkpoint: Float [3] on cpu, which the function reads, was changed in place after its first "
        "call, or by it (change it after backward, or give the function a copy: tensor.clone())");
}

TEST_CASE("recomputation: so is one that the function itself counts up", "[runtime]") {
  const at::Tensor count = at::full({3}, 1.0);
  const at::Tensor y = acc::checkpoint([count](const at::Tensor& x) { return x * count.add_(1); }, leaf());
  CHECK(error_of([&] { y.sum().backward(); }).find("was changed in place after its first call, or by it") !=
        std::string::npos);
}

TEST_CASE("recomputation: running means may change as often as they are updated", "[runtime]") {
  torch::nn::BatchNorm1d norm(3);
  const auto gradient = [&norm](bool checkpoints) {
    const at::Tensor x = at::arange(12, at::kFloat).reshape({4, 3}).requires_grad_(true);
    const at::Tensor y = checkpoints ? acc::checkpoint(norm, x.sin()) : norm(x.sin());
    (norm(x.cos()) * y.square()).sum().backward();
    return x.grad();
  };
  CHECK(gradient(true).equal(gradient(false)));
}

TEST_CASE("recomputation: a function that changes itself is the same in each pass", "[runtime]") {
  const at::Tensor x = leaf();
  const at::Tensor y =
      acc::checkpoint([factor = 1.0](const at::Tensor& one) mutable { return (one * factor++).exp(); }, x);
  y.sum().backward({}, /*retain_graph=*/true);
  const at::Tensor first = x.grad().clone();
  y.sum().backward();
  CHECK(x.grad().equal(first * 2));
}

TEST_CASE("recomputation: TorchScript computes the same both times, from its first call on", "[runtime]") {
  torch::jit::Module script("script");
  script.define("def forward(self, x):\n  y = torch.sigmoid(x) * x\n  return torch.tanh(y) * y.exp()\n");
  auto forward = [script](const at::Tensor& x) mutable { return script.forward({x}).toTensor(); };
  const at::Tensor expected = leaf();
  ((expected.sigmoid() * expected).tanh() * (expected.sigmoid() * expected).exp()).sum().backward();
  for (int step = 0; step < 4; ++step) {
    const at::Tensor x = leaf();
    acc::checkpoint(forward, x).sum().backward();
    CHECK(x.grad().allclose(expected.grad()));
  }
}

TEST_CASE("recomputation: a function may catch what ends its second pass", "[runtime]") {
  const auto function = [](const at::Tensor& x) {
    try {
      return x.exp();
    } catch (const std::exception& exception) {
      throw std::runtime_error(exception.what());
    }
  };
  const at::Tensor x = leaf();
  acc::checkpoint(function, x).sum().backward();
  CHECK(x.grad().allclose(x.detach().exp()));
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
