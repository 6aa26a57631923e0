// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/optimizer_device.hpp"

#include <ATen/ops/ones.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "support/catch.hpp"

namespace {

using namespace torch::optim;

// The state after a step, moved to a device that every machine has.
template <class State, class Native>
const State& moved_state(Native& optimizer) {
  optimizer.param_groups()[0].params()[0].sum().backward();
  optimizer.step();
  acc::move_optimizer_state(optimizer, c10::Device(c10::kMeta));
  return static_cast<const State&>(*optimizer.state().begin()->second);
}

std::vector<at::Tensor> parameter() {
  return {at::ones({2}).requires_grad_()};
}

}  // namespace

TEST_CASE("optimizer_device: what each kind of optimizer keeps is moved", "[runtime]") {
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

TEST_CASE("optimizer_device: one that keeps nothing yet stays so", "[runtime]") {
  SGD sgd(parameter(), SGDOptions(0.1));
  acc::move_optimizer_state(sgd, c10::Device(c10::kMeta));
  CHECK(sgd.state().empty());
}
