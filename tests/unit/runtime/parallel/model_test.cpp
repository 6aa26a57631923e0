// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/model.hpp"

#include <torch/nn/modules/linear.h>

#include <map>
#include <optional>
#include <string>

#include "support/catch.hpp"
#include "support/errors.hpp"
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

// Its output is of an unknown type.
struct Hidden {
  at::Tensor inside;
};
struct HidingNet : torch::nn::Module {
  std::tuple<at::Tensor, std::vector<Hidden>> forward(const at::Tensor& x) { return {x, {Hidden{x}}}; }
};

}  // namespace

TEST_CASE("model: half precision refuses what it cannot make float32 again", "[runtime]") {
  const at::Tensor x = acc::test::numbers({1, 2}, {1, 2}, at::kFloat);
  acc::Model<HidingNet> half(std::make_shared<HidingNet>(), nullptr, acc::MixedPrecision::bf16);
  const std::string error = acc::test::error_of([&] { half(x); });
  CHECK(error.starts_with("the output of forward: std::tuple<at::Tensor, std::vector<"));
  CHECK(error.find("is an unknown type, so its tensors would stay in half precision") != std::string::npos);
  acc::Model<HidingNet> whole(std::make_shared<HidingNet>(), nullptr, acc::MixedPrecision::no);
  whole(x);
  STATIC_REQUIRE(acc::detail::kIsOpaque<std::shared_ptr<Hidden>>);
  STATIC_REQUIRE_FALSE(acc::detail::kIsOpaque<std::tuple<at::Tensor, int, std::string, std::vector<bool>>>);
  STATIC_REQUIRE_FALSE(acc::detail::kIsOpaque<std::map<std::string, std::optional<at::Tensor>>>);
}

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
