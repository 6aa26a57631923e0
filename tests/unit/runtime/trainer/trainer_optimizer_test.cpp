// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_optimizer.hpp"

#include <torch/torch.h>

#include <memory>
#include <tuple>

#include "acc/runtime/optim/adafactor.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace trainer_optimizer_test {

using acc::detail::optimizer_of;
using acc::test::error_of;

namespace {

struct Net : torch::nn::Module {
  Net() {
    fc = register_module("fc", torch::nn::Linear(2, 2));
    scale = register_module("scale", torch::nn::LayerNorm(torch::nn::LayerNormOptions({2})));
  }
  torch::nn::Linear fc = nullptr;
  torch::nn::LayerNorm scale = nullptr;
};

template <class Options>
Options options_of(const acc::TrainingArguments& arguments) {
  const auto optimizer = optimizer_of(arguments, *std::make_shared<Net>());
  return static_cast<Options&>(optimizer->param_groups().at(0).options());
}

}  // namespace

TEST_CASE("trainer_optimizer: weight decay is not applied to biases and normalization", "[runtime]") {
  acc::TrainingArguments arguments;
  arguments.weight_decay = 0.1;
  const auto net = std::make_shared<Net>();
  const auto optimizer = optimizer_of(arguments, *net);
  REQUIRE(optimizer->param_groups().size() == 2);
  REQUIRE(optimizer->param_groups()[0].params().size() == 1);
  CHECK(optimizer->param_groups()[0].params()[0].is_same(net->fc->weight));
  CHECK(optimizer->param_groups()[1].params().size() == 3);
  const auto decay = [&](int group) {
    return static_cast<torch::optim::AdamWOptions&>(optimizer->param_groups()[group].options())
        .weight_decay();
  };
  CHECK(decay(0) == 0.1);
  CHECK(decay(1) == 0);
}

TEST_CASE("trainer_optimizer: parameters that do not require gradients are left out", "[runtime]") {
  const auto net = std::make_shared<Net>();
  net->fc->weight.requires_grad_(false);
  const auto optimizer = optimizer_of({}, *net);
  REQUIRE(optimizer->param_groups().size() == 1);
  CHECK(optimizer->param_groups()[0].params().size() == 3);
}

TEST_CASE("trainer_optimizer: the arguments choose the optimizer and its options", "[runtime]") {
  acc::TrainingArguments arguments;
  arguments.learning_rate = 0.5;
  arguments.adam_beta1 = 0.8;
  CHECK(options_of<torch::optim::AdamWOptions>(arguments).betas() == std::tuple(0.8, 0.999));
  arguments.optim = acc::OptimizerName::sgd;
  arguments.optim_args = "momentum=0.9,nesterov=1";
  const auto sgd = options_of<torch::optim::SGDOptions>(arguments);
  CHECK(sgd.lr() == 0.5);
  CHECK(sgd.momentum() == 0.9);
  CHECK(sgd.nesterov());
  arguments.optim = acc::OptimizerName::rmsprop;
  arguments.optim_args = "alpha=0.5";
  CHECK(options_of<torch::optim::RMSpropOptions>(arguments).alpha() == 0.5);
  arguments.optim = acc::OptimizerName::adagrad;
  CHECK(error_of([&] { optimizer_of(arguments, *std::make_shared<Net>()); }) ==
        "optim_args: does not take 'alpha'");
  arguments.optim_args = {};
  CHECK(options_of<torch::optim::AdagradOptions>(arguments).lr() == 0.5);
  arguments.optim = acc::OptimizerName::adafactor;
  arguments.weight_decay = 0.1;
  CHECK(options_of<acc::AdafactorOptions>(arguments).lr() == 0.5);
  CHECK(options_of<acc::AdafactorOptions>(arguments).weight_decay() == 0.1);
}

TEST_CASE("trainer_optimizer: options that LibTorch would refuse are named", "[runtime]") {
  acc::TrainingArguments arguments;
  arguments.optim = acc::OptimizerName::sgd;
  const auto refusal = [&](const char* options) {
    arguments.optim_args = options;
    return error_of([&] { optimizer_of(arguments, *std::make_shared<Net>()); });
  };
  CHECK(refusal("momentum=-1") == "optim_args: momentum: must not be negative");
  CHECK(refusal("nesterov=1") == "optim_args: nesterov: needs a momentum");
  arguments.optim = acc::OptimizerName::rmsprop;
  CHECK(refusal("alpha=-1") == "optim_args: alpha: must not be negative");
}

}  // namespace trainer_optimizer_test
