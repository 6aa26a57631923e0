// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/model.hpp"

#include <torch/nn/modules/linear.h>

#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

namespace {

// Tells the type in which it computed.
struct Spy : torch::nn::Module {
  Spy() : linear(register_module("linear", torch::nn::Linear(2, 2))) {}

  std::tuple<at::Tensor, int> forward(const at::Tensor& x) {
    const at::Tensor out = linear->forward(x);
    computed_in = out.scalar_type();
    return {out, 7};
  }

  torch::nn::Linear linear;
  at::ScalarType computed_in = at::kFloat;
};

}  // namespace

TEST_CASE("model: forward computes in bf16, gives float32 back and passes other parts on", "[runtime]") {
  acc::Model<Spy> model(std::make_shared<Spy>(), nullptr, acc::MixedPrecision::bf16);
  const auto [out, number] = model(acc::test::numbers({1, 2}, {1, 2}, at::kFloat));
  CHECK(model->computed_in == at::kBFloat16);
  CHECK(out.scalar_type() == at::kFloat);
  CHECK(number == 7);
  CHECK(model->linear->weight.scalar_type() == at::kFloat);
}

TEST_CASE("model: without mixed precision nothing changes", "[runtime]") {
  acc::Model<Spy> model(std::make_shared<Spy>(), nullptr, acc::MixedPrecision::no);
  model(acc::test::numbers({1, 2}, {1, 2}, at::kFloat));
  CHECK(model->computed_in == at::kFloat);
}
