// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/model.hpp"

#include <torch/nn/modules/linear.h>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "acc/runtime/recomputation/checkpoint_function.hpp"
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

// A program's own batch.
struct Batch {
  at::Tensor images;
};
void for_each_tensor(Batch& batch, const acc::TensorFunction& function) {
  function(batch.images);
}

// Calls its layer by acc::checkpoint, or as it is.
struct Checkpointed : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return calls_checkpoint ? acc::checkpoint(layer(), x) : layer()(x);
  }
  std::function<at::Tensor(const at::Tensor&)> layer() {
    return [this](const at::Tensor& x) {
      ++calls;
      return x.exp();
    };
  }
  bool calls_checkpoint = true;
  int calls = 0;
};

// Has means of its own.
struct Enabled : Checkpointed {
  void gradient_checkpointing_enable() {}
};

template <class Module>
acc::Model<Module> model_of(std::shared_ptr<Module> module, std::optional<bool> activation_checkpointing) {
  return {std::move(module), nullptr, acc::MixedPrecision::no, at::kCPU, activation_checkpointing};
}

at::Tensor leaf() {
  return acc::test::numbers({1, 2}, {2}, at::kFloat).requires_grad_(true);
}

}  // namespace

TEST_CASE("model: activation checkpointing is on unless it is switched off", "[runtime]") {
  const auto calls = [](std::optional<bool> activation_checkpointing) {
    auto model = model_of(std::make_shared<Checkpointed>(), activation_checkpointing);
    model(leaf()).sum().backward();
    return model->calls;
  };
  CHECK(calls({}) == 2);
  CHECK(calls(true) == 2);
  CHECK(calls(false) == 1);
}

TEST_CASE("model: what is switched on must be called by the first forward of a training", "[runtime]") {
  const auto module = std::make_shared<Checkpointed>();
  module->calls_checkpoint = false;
  auto model = model_of(module, true);
  model->eval();
  model(leaf());
  model->train();
  CHECK(acc::test::error_of([&] { model(leaf()); }).find("nothing in forward calls acc::checkpoint") !=
        std::string::npos);
  module->calls_checkpoint = true;
  model(leaf());
  module->calls_checkpoint = false;
  model(leaf());
  const auto enabled = std::make_shared<Enabled>();
  enabled->calls_checkpoint = false;
  model_of(enabled, true)(leaf());
}

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

TEST_CASE("model: with weights in half precision forward takes what fits them, and labels as they are",
          "[runtime]") {
  struct Inputs : torch::nn::Module {
    at::Tensor forward(const std::vector<at::Tensor>& images, const at::Tensor& ids,
                       std::vector<at::Tensor>& out, const at::Tensor& labels) {
      types = {images[0].scalar_type(), ids.scalar_type(), out[0].scalar_type(), labels.scalar_type()};
      return images[0];
    }
    std::vector<at::ScalarType> types;
  };
  const acc::Model<Inputs> model(std::make_shared<Inputs>(), nullptr, acc::MixedPrecision::no);
  const at::Tensor x = acc::test::numbers({1, 2}, {2}, at::kDouble);
  const at::Tensor ids = x.to(at::kLong);
  std::vector<at::Tensor> out = {x};
  const auto types_with = [&](bool last_are_labels) {
    CHECK(model.with_weights_type(at::kHalf, last_are_labels)(std::vector{x}, ids, out, x).scalar_type() ==
          at::kFloat);
    return model->types;
  };
  CHECK(types_with(true) == std::vector{at::kHalf, at::kLong, at::kDouble, at::kDouble});
  CHECK(types_with(false) == std::vector{at::kHalf, at::kLong, at::kDouble, at::kHalf});
}

TEST_CASE("model: with weights in half precision forward gets copies of all that has tensors of its own",
          "[runtime]") {
  struct Inputs : torch::nn::Module {
    at::Tensor forward(const Batch& batch, const std::optional<at::Tensor>& mask,
                       std::pair<at::Tensor, int> sized,
                       const std::unordered_map<std::string, at::Tensor>& named,
                       const torch::OrderedDict<std::string, at::Tensor>& ordered,
                       const std::map<std::string, std::vector<at::Tensor>>& nested) {
      for (const at::Tensor& tensor :
           {batch.images, *mask, sized.first, named.at("x"), ordered["x"], nested.at("x")[0]})
        types.push_back(tensor.scalar_type());
      return sized.first;
    }
    std::vector<at::ScalarType> types;
  };
  const acc::Model<Inputs> model(std::make_shared<Inputs>(), nullptr, acc::MixedPrecision::no);
  const at::Tensor x = acc::test::numbers({1, 2}, {2}, at::kFloat);
  const Batch batch{x};
  torch::OrderedDict<std::string, at::Tensor> ordered;
  ordered.insert("x", x);
  model.with_weights_type(at::kHalf, false)(
      batch, std::optional(x), std::pair{x, 7}, std::unordered_map<std::string, at::Tensor>{{"x", x}},
      std::as_const(ordered), std::map<std::string, std::vector<at::Tensor>>{{"x", {x}}});
  CHECK(model->types == std::vector(6, at::kHalf));
  CHECK(batch.images.is_same(x));
  CHECK(ordered["x"].is_same(x));
}

TEST_CASE("model: tensors in a span remain the caller's", "[runtime]") {
  struct Inputs : torch::nn::Module {
    at::Tensor forward(const std::span<at::Tensor>& images) { return images[0]; }
  };
  const acc::Model<Inputs> model(std::make_shared<Inputs>(), nullptr, acc::MixedPrecision::no);
  std::vector images = {acc::test::numbers({1, 2}, {2}, at::kFloat)};
  model.with_weights_type(at::kHalf, false)(std::span(images));
  CHECK(images[0].scalar_type() == at::kFloat);
}

TEST_CASE("model: without mixed precision nothing changes", "[runtime]") {
  acc::Model<Spy> model(std::make_shared<Spy>(), nullptr, acc::MixedPrecision::no);
  model(acc::test::numbers({1, 2}, {1, 2}, at::kFloat));
  CHECK(model->computed_in == at::kFloat);
}

}  // namespace model_test
