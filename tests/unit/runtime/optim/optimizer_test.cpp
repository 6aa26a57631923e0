// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/optimizer.hpp"

#include <ATen/ops/complex.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <limits>
#include <string>

#include "acc/base/error.hpp"
#include "acc/runtime/optim/adafactor.hpp"
#include "acc/runtime/optim/grad_scaler.hpp"
#include "acc/runtime/optim/gradients.hpp"
#include "acc/runtime/optim/muon.hpp"
#include "acc/runtime/precision/autocast.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace optimizer_test {

namespace {

// A weight of 0; a step with gradient 1 sets it to -1.
struct Setup {
  explicit Setup(std::shared_ptr<acc::GradScaler> scaler = nullptr)
      : weight(at::zeros({1}).set_requires_grad(true)),
        gradients(std::make_shared<acc::GradientState>(2)),
        optimizer(std::make_shared<torch::optim::SGD>(std::vector<at::Tensor>{weight}, 1.0), gradients,
                  scaler) {}

  void set_gradient(double value) { weight.mutable_grad() = at::full({1}, value, at::kFloat); }
  double value() const { return weight.item<double>(); }

  at::Tensor weight;
  std::shared_ptr<acc::GradientState> gradients;
  acc::Optimizer optimizer;
};

}  // namespace

TEST_CASE("optimizer: while gradients accumulate it neither steps nor resets them", "[runtime]") {
  Setup setup;
  setup.set_gradient(1);
  setup.gradients->next_batch(false);
  setup.optimizer.step();
  setup.optimizer.zero_grad();
  CHECK(setup.value() == 0);
  CHECK(setup.weight.grad().defined());
  setup.gradients->next_batch(false);
  setup.optimizer.step();
  setup.optimizer.zero_grad();
  CHECK(setup.value() == -1);
  CHECK_FALSE(setup.weight.grad().defined());
}

TEST_CASE("optimizer: within one autocast, what follows a step computes with the new weights", "[runtime]") {
  const acc::Autocast autocast(acc::MixedPrecision::bf16);
  const at::Tensor weight = at::zeros({2, 2}).set_requires_grad(true);
  acc::Optimizer optimizer(std::make_shared<torch::optim::SGD>(std::vector<at::Tensor>{weight}, /*lr=*/1.0));
  const auto sum = [&] { return at::ones({2, 2}).mm(weight).sum(); };
  sum().backward();
  optimizer.step();
  CHECK(sum().item<float>() == -16);
}

TEST_CASE("optimizer: a skipped step is reported until the next one, by all copies", "[runtime]") {
  auto scaler = std::make_shared<acc::GradScaler>(acc::GradScalerOptions{.init_scale = 4});
  Setup setup(scaler);
  const acc::Optimizer copy = setup.optimizer;
  scaler->scale(at::full({}, 1.0));
  setup.set_gradient(std::numeric_limits<double>::infinity());
  setup.optimizer.step();
  CHECK(setup.value() == 0);
  CHECK(copy.step_was_skipped());
  CHECK(scaler->get_scale() == 2);
  scaler->scale(at::full({}, 1.0));
  setup.set_gradient(2);
  setup.optimizer.step();
  CHECK(setup.value() == -1);
  CHECK_FALSE(copy.step_was_skipped());
}

TEST_CASE("optimizer: a closure is called, but not in fp16", "[runtime]") {
  const at::Tensor weight = at::full({1}, 3.0).set_requires_grad(true);
  const auto lbfgs = std::make_shared<torch::optim::LBFGS>(std::vector<at::Tensor>{weight});
  const auto closure = [&] {
    lbfgs->zero_grad();
    at::Tensor loss = (weight - 1).square().sum();
    loss.backward();
    return loss;
  };
  CHECK(acc::Optimizer(lbfgs).step(closure).item<double>() == 4);
  CHECK(std::abs(weight.item<double>() - 1) < 1e-3);
  acc::Optimizer scaled(lbfgs, std::make_shared<acc::GradientState>(), std::make_shared<acc::GradScaler>());
  CHECK_THROWS_AS(scaled.step(closure), acc::Error);
}

namespace {

using namespace torch::optim;

// The state after a step, moved to the meta device, which exists on every machine.
template <class State, class Native>
const State& moved_state(Native& optimizer) {
  optimizer.param_groups()[0].params()[0].sum().backward();
  optimizer.step();
  acc::detail::move_optimizer_state(optimizer, c10::Device(c10::kMeta));
  return static_cast<const State&>(*optimizer.state().begin()->second);
}

std::vector<at::Tensor> parameter() {
  return {at::ones({2}).requires_grad_()};
}

}  // namespace

TEST_CASE("optimizer_device: the state of each type of optimizer is moved", "[runtime]") {
  SGD sgd(parameter(), SGDOptions(0.1).momentum(0.9));
  CHECK(moved_state<SGDParamState>(sgd).momentum_buffer().is_meta());

  Adam adam(parameter(), AdamOptions(0.1).amsgrad(true));
  const auto& of_adam = moved_state<AdamParamState>(adam);
  CHECK(
      (of_adam.exp_avg().is_meta() && of_adam.exp_avg_sq().is_meta() && of_adam.max_exp_avg_sq().is_meta()));

  AdamW adamw(parameter(), AdamWOptions(0.1));
  const auto& of_adamw = moved_state<AdamWParamState>(adamw);
  CHECK((of_adamw.exp_avg().is_meta() && of_adamw.exp_avg_sq().is_meta()));
  CHECK_FALSE(of_adamw.max_exp_avg_sq().defined());

  Adagrad adagrad(parameter(), AdagradOptions(0.1));
  CHECK(moved_state<AdagradParamState>(adagrad).sum().is_meta());

  RMSprop rmsprop(parameter(), RMSpropOptions(0.1).momentum(0.9).centered(true));
  const auto& of_rmsprop = moved_state<RMSpropParamState>(rmsprop);
  CHECK((of_rmsprop.square_avg().is_meta() && of_rmsprop.momentum_buffer().is_meta() &&
         of_rmsprop.grad_avg().is_meta()));
}

namespace {

// What a prepared optimizer of this type says of a complex parameter.
template <class Native, class Options>
std::string refusal_of_complex(const Options& options) {
  const std::vector<at::Tensor> weights = {
      at::ones({2, 2}, at::TensorOptions(at::kComplexFloat)).requires_grad_(true)};
  weights[0].mutable_grad() = at::ones_like(weights[0]);
  acc::Optimizer optimizer(std::make_shared<Native>(weights, options));
  return acc::test::error_of([&] { optimizer.step(); });
}

}  // namespace

TEST_CASE("optimizer: a parameter of two groups is refused before it is stepped twice", "[runtime]") {
  const at::Tensor weight = at::ones({2, 3}).requires_grad_(true);
  const at::Tensor bias = at::ones({3}).requires_grad_(true);
  const auto native = std::make_shared<SGD>(std::vector<at::Tensor>{bias}, SGDOptions(0.1));
  acc::Optimizer optimizer(native);
  const auto step = [&] {
    for (const at::Tensor& parameter : {weight, bias}) parameter.mutable_grad() = at::ones_like(parameter);
    optimizer.step();
  };
  native->add_param_group(OptimizerParamGroup({weight}));
  CHECK(acc::test::error_of(step) == "no error");
  // LibTorch looks for this only in groups that are added.
  native->param_groups().push_back(native->param_groups()[1]);
  CHECK(
      acc::test::error_of(step) ==
      "optimizer step: a parameter of [2, 3] is in the groups 1 and 2, which would each step it (leave it in "
      "one of them; layers that share a weight each list it)");
  CHECK(weight.detach().equal(at::full({2, 3}, 0.9)));
}

TEST_CASE("optimizer: complex parameters are refused by those that are not Python's for them", "[runtime]") {
  CHECK(
      refusal_of_complex<Adam>(AdamOptions(0.1)) ==
      "optimizer step: torch::optim::Adam would train complex parameters otherwise than Python's (register "
      "the pairs of real numbers, at::view_as_real of the parameter, and use at::view_as_complex of them in "
      "forward: Python's numbers; or train it by SGD)");
  const std::string others[] = {refusal_of_complex<AdamW>(AdamWOptions(0.1)),
                                refusal_of_complex<RMSprop>(RMSpropOptions(0.1)),
                                refusal_of_complex<Adagrad>(AdagradOptions(0.1)),
                                refusal_of_complex<LBFGS>(LBFGSOptions(0.1)),
                                refusal_of_complex<acc::Adafactor>(acc::AdafactorOptions(0.1)),
                                refusal_of_complex<acc::Muon>(acc::MuonOptions(0.1))};
  for (const std::string& other : others)
    CHECK(other.find("would train complex parameters otherwise than Python's") != std::string::npos);
}

TEST_CASE("optimizer: SGD steps a complex parameter as its two parts", "[runtime]") {
  const at::Tensor weight = at::ones({1}, at::TensorOptions(at::kComplexFloat)).requires_grad_(true);
  weight.mutable_grad() = at::complex(at::full({1}, 1.0F), at::full({1}, 2.0F));
  acc::Optimizer(std::make_shared<SGD>(std::vector<at::Tensor>{weight}, SGDOptions(0.5))).step();
  CHECK(at::view_as_real(weight.detach()).equal(at::tensor({0.5F, -1.0F}).reshape({1, 2})));
}

TEST_CASE("optimizer_device: an empty state stays empty", "[runtime]") {
  SGD sgd(parameter(), SGDOptions(0.1));
  acc::detail::move_optimizer_state(sgd, c10::Device(c10::kMeta));
  CHECK(sgd.state().empty());
}

}  // namespace optimizer_test
