// SPDX-License-Identifier: Apache-2.0
// LibTorch's fused kernels beside its own steps. They compute on CPUs, too; tests/gpu sees them on devices.
#include "acc/runtime/optim/fused_step.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <memory>

#include "support/catch.hpp"

namespace fused_step_test {

namespace {

using namespace torch::optim;

using Tensors = std::vector<at::Tensor>;
using Make = std::function<std::unique_ptr<Optimizer>(std::vector<OptimizerParamGroup>)>;
using Step = std::function<void(Optimizer&)>;

const Step native = [](Optimizer& optimizer) { optimizer.step(); };
const Step fused = [](Optimizer& optimizer) { CHECK(acc::detail::step_fused(optimizer)); };

at::Tensor numbers(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return at::arange(1, count + 1, type).div(count).reshape(sizes);
}

// Of two types, one with rows apart in memory, one that gets no gradient.
Tensors make_parameters() {
  Tensors all{numbers({3, 4}), numbers({5}), numbers({2, 3}).t(), numbers({4}, at::kDouble), numbers({2})};
  for (at::Tensor& one : all) one.set_requires_grad(true);
  return all;
}

void set_gradients(Tensors& parameters, int step) {
  for (std::size_t i = 0; i + 1 < parameters.size(); ++i)
    parameters[i].mutable_grad() = parameters[i].detach().mul(step + 1).sin().sub(0.2);
}

// The parameters after one step for each of `steps`, the second of which some parameters miss.
Tensors train(const Make& make, const std::vector<Step>& steps) {
  Tensors parameters = make_parameters();
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(Tensors(parameters.begin(), parameters.begin() + 2));
  groups.emplace_back(Tensors(parameters.begin() + 2, parameters.end()));
  const auto optimizer = make(groups);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    set_gradients(parameters, static_cast<int>(i));
    if (i == 1) parameters[1].mutable_grad().reset();
    steps[i](*optimizer);
  }
  return parameters;
}

void check_equal(const Tensors& one, const Tensors& other) {
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].allclose(other[i], 1e-6, 1e-7));
}

template <class Kind, class Options>
Make maker(Options options) {
  return [options](std::vector<OptimizerParamGroup> groups) {
    return std::make_unique<Kind>(std::move(groups), options);
  };
}

struct Derived : SGD {
  using SGD::SGD;
};

}  // namespace

TEST_CASE("fused step: it trains as LibTorch's own step does, also one after the other", "[runtime]") {
  const Make make = GENERATE(
      maker<SGD>(SGDOptions(0.1)), maker<SGD>(SGDOptions(0.1).weight_decay(0.3)),
      maker<SGD>(SGDOptions(0.1).momentum(0.9).dampening(0.2)),
      maker<SGD>(SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.1)),
      maker<Adam>(AdamOptions(0.01)), maker<Adam>(AdamOptions(0.01).weight_decay(0.1).amsgrad(true)),
      maker<AdamW>(AdamWOptions(0.01)), maker<AdamW>(AdamWOptions(0.01).betas({0.8, 0.9}).amsgrad(true)));
  const Tensors expected = train(make, {native, native, native, native});
  check_equal(train(make, {fused, fused, fused, fused}), expected);
  check_equal(train(make, {native, native, fused, fused}), expected);
  check_equal(train(make, {fused, fused, native, native}), expected);
  CHECK_FALSE(expected[0].equal(make_parameters()[0]));
  CHECK(expected.back().equal(make_parameters().back()));
}

TEST_CASE("fused step: other optimizers and gradients are left alone", "[runtime]") {
  const auto is_left = [](Optimizer& optimizer, const at::Tensor& parameter) {
    const at::Tensor before = parameter.detach().clone();
    const bool stepped = acc::detail::step_fused(optimizer);
    return !stepped && parameter.equal(before) && optimizer.state().empty();
  };
  at::Tensor parameter = numbers({2, 3}).set_requires_grad(true);
  parameter.mutable_grad() = at::full({2, 3}, 1.0);
  Adagrad adagrad({parameter});
  LBFGS lbfgs(Tensors{parameter});
  Derived derived({parameter}, SGDOptions(0.1));
  SGD sgd({parameter}, SGDOptions(0.1).momentum(0.9));
  AdamW adamw({parameter});
  CHECK_FALSE(acc::detail::step_fused(adagrad));
  CHECK(is_left(lbfgs, parameter));
  CHECK(is_left(derived, parameter));
  parameter.mutable_grad() = at::full({3, 2}, 1.0).t();
  CHECK(is_left(sgd, parameter));
  CHECK(is_left(adamw, parameter));
  parameter.mutable_grad() = at::zeros({2, 3}).to_sparse();
  CHECK(is_left(sgd, parameter));
  CHECK(is_left(adamw, parameter));
}

TEST_CASE("quick step: on the CPU it is LibTorch's own, to the bit, and evaluates a closure once",
          "[runtime]") {
  const Step quick = [](Optimizer& optimizer) { acc::detail::step_quickly(optimizer); };
  const Make make = maker<AdamW>(AdamWOptions(0.01));
  const Tensors expected = train(make, {native, native});
  const Tensors trained = train(make, {quick, quick});
  for (std::size_t i = 0; i < trained.size(); ++i) CHECK(trained[i].equal(expected[i]));

  at::Tensor parameter = numbers({2}).set_requires_grad(true);
  SGD sgd({parameter}, SGDOptions(0.1));
  int calls = 0;
  const at::Tensor loss = acc::detail::step_quickly(sgd, [&] {
    ++calls;
    at::Tensor sum = parameter.sum();
    sum.backward();
    return sum;
  });
  CHECK(calls == 1);
  CHECK(loss.item<double>() == 1.5);
  CHECK(parameter.allclose(numbers({2}) - 0.1));
}

}  // namespace fused_step_test
