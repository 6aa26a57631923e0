// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/recomputation/checkpoint_function.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "acc/runtime/precision/autocast.hpp"
#include "acc/runtime/tensors/random.hpp"
#include "support/catch.hpp"

namespace checkpoint_function_test {

namespace {

at::Tensor leaf(double value = 2) {
  return at::full({3}, value).requires_grad_(true);
}

// The gradients of a network of four layers, of which the two in the middle are computed again or not.
struct Training {
  bool checkpoints = false;
  double dropout = 0;
  acc::MixedPrecision precision = acc::MixedPrecision::no;

  std::vector<at::Tensor> gradients() const {
    acc::set_seed(1);
    torch::nn::Linear first(4, 8);
    torch::nn::Linear second(8, 8);
    const at::Tensor x = at::randn({5, 4});
    auto block = [this, second](const at::Tensor& in) mutable {
      return at::dropout(second(in).tanh(), dropout, /*train=*/true).exp();
    };
    at::Tensor loss;
    {
      const acc::Autocast autocast(precision);
      const at::Tensor in = first(x);
      const at::Tensor out =
          checkpoints ? acc::checkpoint(block, acc::checkpoint(block, in)) : block(block(in));
      loss = out.to(at::kFloat).square().mean();
    }
    loss.backward();
    std::vector<at::Tensor> gradients = {loss.detach()};
    for (const auto& module : {first, second})
      for (const at::Tensor& parameter : module->parameters()) gradients.push_back(parameter.grad());
    return gradients;
  }
};

// Whether the loss and each gradient are bit-identical with and without checkpoint.
bool changes_nothing(Training training) {
  const std::vector<at::Tensor> plain = training.gradients();
  training.checkpoints = true;
  const std::vector<at::Tensor> repeated = training.gradients();
  for (std::size_t i = 0; i < plain.size(); ++i)
    if (!repeated[i].equal(plain[i])) return false;
  return true;
}

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl>;

WeakTensor weak(const at::Tensor& tensor) {
  return WeakTensor(tensor.getIntrusivePtr());
}

}  // namespace

TEST_CASE("checkpoint: losses and gradients are those of a plain call, to the last bit", "[runtime]") {
  CHECK(changes_nothing({}));
}

TEST_CASE("checkpoint: dropout drops the same in both passes", "[runtime]") {
  CHECK(changes_nothing({.dropout = 0.5}));
}

TEST_CASE("checkpoint: what was computed in bf16 or fp16 is so again", "[runtime]") {
  CHECK(changes_nothing({.precision = acc::MixedPrecision::bf16}));
  CHECK(changes_nothing({.dropout = 0.5, .precision = acc::MixedPrecision::fp16}));
}

TEST_CASE("checkpoint: nothing of the function is kept between forward and backward", "[runtime]") {
  WeakTensor inside(c10::intrusive_ptr<c10::TensorImpl>{});
  const auto function = [&inside](const at::Tensor& x) {
    const at::Tensor y = x.exp();
    inside = weak(y);
    return y.sin();
  };
  const at::Tensor x = leaf();
  const at::Tensor plain = function(x);
  CHECK_FALSE(inside.expired());
  const at::Tensor y = acc::checkpoint(function, x);
  CHECK(inside.expired());
  y.sum().backward();
  CHECK(inside.expired());
}

TEST_CASE("checkpoint: the function is called once more, as far as backward needs it", "[runtime]") {
  int begun = 0;
  int ended = 0;
  const auto function = [&](const at::Tensor& x) {
    ++begun;
    const at::Tensor y = x.exp() + 1;
    ++ended;
    return y;
  };
  const at::Tensor y = acc::checkpoint(function, leaf());
  y.sum().backward();
  CHECK(begun == 2);
  CHECK(ended == 1);
}

TEST_CASE("checkpoint: the function and its inputs are let go after backward", "[runtime]") {
  const auto captured = std::make_shared<int>();
  at::Tensor x = leaf();
  at::Tensor in = x + 1;
  const WeakTensor input = weak(in);
  at::Tensor loss = acc::checkpoint([captured](const at::Tensor& one) { return one.exp(); }, in).sum();
  in.reset();
  CHECK(captured.use_count() == 2);
  CHECK_FALSE(input.expired());
  loss.backward();
  CHECK(captured.use_count() == 1);
  CHECK(input.expired());
}

TEST_CASE("checkpoint: without a backward they are let go with the result", "[runtime]") {
  const auto captured = std::make_shared<int>();
  at::Tensor y = acc::checkpoint([captured](const at::Tensor& x) { return x.exp(); }, leaf());
  CHECK(captured.use_count() == 2);
  y.reset();
  CHECK(captured.use_count() == 1);
}

TEST_CASE("checkpoint: tensors may be in structures, beside other values, in and out", "[runtime]") {
  struct Result {
    std::map<std::string, at::Tensor> by_name;
    int calls;
  };
  const auto function = [](const std::vector<at::Tensor>& list, const std::tuple<at::Tensor, int>& pair,
                           const std::optional<at::Tensor>& none, const at::Tensor& undefined,
                           const std::string& name) {
    const bool complete = !none && !undefined.defined();
    return Result{.by_name = {{name, list[0].exp() * list[1].exp() * std::get<0>(pair).exp()}},
                  .calls = complete ? std::get<1>(pair) : 0};
  };
  const std::vector<at::Tensor> list = {leaf(1), leaf(2)};
  const std::tuple pair(leaf(0), 7);
  const Result result =
      acc::checkpoint(function, list, pair, std::optional<at::Tensor>(), at::Tensor(), "name");
  CHECK(result.calls == 7);
  result.by_name.at("name").sum().backward();
  for (const at::Tensor& tensor : {list[0], list[1], std::get<0>(pair)})
    CHECK(tensor.grad().allclose(at::full({3}, std::exp(3.0))));
}

TEST_CASE("checkpoint: a module is passed by its holder", "[runtime]") {
  torch::nn::Sequential layers(torch::nn::Linear(3, 3), torch::nn::Linear(3, 1));
  const at::Tensor x = leaf();
  const at::Tensor y = acc::checkpoint(layers, x);
  CHECK(y.equal(layers->forward(x)));
  y.sum().backward();
  for (const at::Tensor& parameter : layers->parameters()) CHECK(parameter.grad().defined());
}

TEST_CASE(
    "checkpoint: calls may be nested, and each function keeps its inputs only as the one around it lets it",
    "[runtime]") {
  int calls = 0;
  WeakTensor between(c10::intrusive_ptr<c10::TensorImpl>{});
  const auto innermost = [&calls](const at::Tensor& x) {
    ++calls;
    return x.sin().exp();
  };
  const auto outer = [&](const at::Tensor& x) {
    const at::Tensor y = acc::checkpoint(innermost, x.sin());
    between = weak(y);
    return acc::checkpoint(innermost, y).sin();
  };
  const at::Tensor x = leaf();
  const at::Tensor repeated = leaf();
  outer(x).sum().backward();
  calls = 0;
  const at::Tensor loss = acc::checkpoint(outer, repeated).sum();
  CHECK(calls == 2);
  CHECK(between.expired());
  loss.backward();
  CHECK(repeated.grad().equal(x.grad()));
}

TEST_CASE("checkpoint: a second backward through the same graph computes again", "[runtime]") {
  const at::Tensor x = leaf();
  const at::Tensor loss = acc::checkpoint([](const at::Tensor& one) { return one.exp().sin(); }, x).sum();
  loss.backward({}, /*retain_graph=*/true);
  const at::Tensor once = x.grad().clone();
  loss.backward();
  CHECK(x.grad().equal(once * 2));
}

TEST_CASE("checkpoint: gradients have gradients", "[runtime]") {
  const auto second_derivative = [](bool checkpoints) {
    const auto function = [](const at::Tensor& x) { return x.exp().sin(); };
    const at::Tensor x = leaf();
    const at::Tensor y = checkpoints ? acc::checkpoint(function, x) : function(x);
    const auto first = torch::autograd::grad({y.sum()}, {x}, {}, /*retain_graph=*/{}, /*create_graph=*/true);
    return torch::autograd::grad({first[0].sum()}, {x})[0];
  };
  CHECK(second_derivative(true).equal(second_derivative(false)));
}

TEST_CASE("checkpoint: the function may take gradients itself", "[runtime]") {
  const auto gradient = [](bool checkpoints) {
    const auto penalty = [](const at::Tensor& x) {
      const at::Tensor y = x.exp().sin();
      return y + torch::autograd::grad({y.sum()}, {x}, {}, true, /*create_graph=*/true)[0].square();
    };
    const at::Tensor x = leaf();
    (checkpoints ? acc::checkpoint(penalty, x) : penalty(x)).sum().backward();
    return x.grad();
  };
  CHECK(gradient(true).allclose(gradient(false)));
}

TEST_CASE("checkpoint: without gradients it is a plain call", "[runtime]") {
  const auto captured = std::make_shared<int>();
  const at::NoGradGuard no_grad;
  const at::Tensor x = leaf();
  const auto in_place = [captured](at::Tensor in) { return in.add_(1); };
  CHECK(acc::checkpoint(in_place, x).equal(at::full({3}, 3.0)));
  CHECK(captured.use_count() == 2);
}

}  // namespace checkpoint_function_test
