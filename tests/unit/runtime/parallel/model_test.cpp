// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/model.hpp"

#include <torch/nn/modules/linear.h>

#include <map>
#include <optional>
#include <string>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace model_test {

namespace {

// Records the type in which it computed.
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

// A type that acc does not know.
struct Hidden {
  at::Tensor inside;
};
struct HidingNet : torch::nn::Module {
  std::tuple<at::Tensor, std::vector<Hidden>> forward(const at::Tensor& x) { return {x, {Hidden{x}}}; }
};

}  // namespace

TEST_CASE("model: half precision refuses outputs that cannot be converted to float32", "[runtime]") {
  const at::Tensor x = acc::test::numbers({1, 2}, {1, 2}, at::kFloat);
  acc::Model<HidingNet> half(std::make_shared<HidingNet>(), nullptr, acc::MixedPrecision::bf16);
  const std::string error = acc::test::error_of([&] { half(x); });
  CHECK(error.starts_with("the output of forward: std::tuple<at::Tensor, std::vector<"));
  CHECK(error.find("is not a type that acc knows, so its tensors would stay in half precision") !=
        std::string::npos);
  acc::Model<HidingNet> whole(std::make_shared<HidingNet>(), nullptr, acc::MixedPrecision::no);
  whole(x);
  STATIC_REQUIRE(acc::detail::kIsOpaque<std::shared_ptr<Hidden>>);
  STATIC_REQUIRE_FALSE(acc::detail::kIsOpaque<std::tuple<at::Tensor, int, std::string, std::vector<bool>>>);
  STATIC_REQUIRE_FALSE(acc::detail::kIsOpaque<std::map<std::string, std::optional<at::Tensor>>>);
}

TEST_CASE("model: forward computes in bf16, returns float32 and leaves other values unchanged", "[runtime]") {
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

}  // namespace model_test
