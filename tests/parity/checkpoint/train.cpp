// SPDX-License-Identifier: Apache-2.0
// train MODE FOLDER OPTIMIZER: `save` trains three steps, saves and trains on; `load` loads instead. train.py
// does the same in Python; either side loads what the other saved. Each step prints its loss and learning
// rate. Dropout takes random numbers from the generator of the device. `complex` is sgd of a model with a
// complex parameter.
#include <ATen/ops/arange.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "acc/base/error.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/optim/adafactor.hpp"
#include "acc/runtime/optim/schedulers.hpp"

namespace {

using namespace torch::optim;

struct NetImpl : torch::nn::Module {
  explicit NetImpl(bool is_complex)
      : first(register_module("first", torch::nn::Linear(2, 8))),
        second(register_module("second", torch::nn::Linear(8, 1))) {
    if (is_complex) turns = register_parameter("turns", at::randn({8, 8}, at::kComplexFloat));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor hidden = first->forward(x).tanh();
    if (turns.defined()) hidden = hidden.to(at::kComplexFloat).matmul(turns).abs();
    return second->forward(at::dropout(hidden, 0.25, /*train=*/true));
  }
  torch::nn::Linear first;
  torch::nn::Linear second;
  at::Tensor turns;
};

// An object to register, whose state is a dict with numbers: one of them needs 64 bits without a sign.
struct Counter {
  int steps = 0;
  nlohmann::json seed = 18446744073709551615U;
  std::string state() const { return nlohmann::json{{"steps", steps}, {"seed", seed}}.dump(); }
  void load_state(std::string_view text) {
    const auto state = nlohmann::json::parse(text);
    steps = state.at("steps").get<int>();
    if (state.at("seed").dump() != seed.dump())
      throw acc::Error({.what = "is another number", .where = "seed"});
  }
};

std::shared_ptr<Optimizer> make_optimizer(const std::string& name,
                                          const std::vector<at::Tensor>& parameters) {
  if (name == "sgd" || name == "complex")
    return std::make_shared<SGD>(parameters, SGDOptions(0.05).momentum(0.9).nesterov(true));
  if (name == "adam") return std::make_shared<Adam>(parameters, AdamOptions(0.01).amsgrad(true));
  if (name == "adamw") return std::make_shared<AdamW>(parameters, AdamWOptions(0.01));
  if (name == "adagrad") return std::make_shared<Adagrad>(parameters, AdagradOptions(0.05).lr_decay(0.1));
  if (name == "rmsprop")
    return std::make_shared<RMSprop>(parameters, RMSpropOptions(0.01).momentum(0.5).centered(true));
  if (name == "adafactor")
    return std::make_shared<acc::Adafactor>(parameters, acc::AdafactorOptions(0.01).beta1(0.9));
  if (name == "lbfgs")
    return std::make_shared<LBFGS>(parameters, LBFGSOptions(0.5).max_iter(3).history_size(4));
  throw acc::Error({.what = "is no optimizer of this test", .where = name});
}

void train(const std::string& mode, const std::string& folder, const std::string& name) {
  acc::Accelerator accelerator;
  acc::set_seed(mode == "save" ? 1 : 2);
  auto net = std::make_shared<NetImpl>(name == "complex");
  auto native = make_optimizer(name, net->parameters());
  auto plain = std::make_shared<acc::Scheduler>(
      *native, acc::lambda_lr([](std::int64_t step) { return 1.0 / static_cast<double>(1 + step); }));
  auto [model, optimizer, scheduler] = accelerator.prepare(net, native, plain);
  Counter counter;
  accelerator.register_for_checkpointing(counter);
  if (mode == "load") accelerator.load_state(folder);
  while (counter.steps < 7) {
    if (mode == "save" && counter.steps == 3) accelerator.save_state(folder);
    const at::Tensor x =
        at::arange(8, at::kFloat).mul(counter.steps + 1).sin().reshape({4, 2}).to(accelerator.device());
    at::Tensor loss;
    const auto closure = [&] {
      optimizer.zero_grad();
      loss = (model(x) - x.sum(1, true)).square().mean();
      accelerator.backward(loss);
      return loss;
    };
    if (name == "lbfgs") {
      loss = optimizer.step(closure);  // the first one of several
    } else {
      closure();
      optimizer.step();
    }
    scheduler.step();
    ++counter.steps;
    std::printf("step %d %.17g %.17g\n", counter.steps, loss.item<double>(),
                native->param_groups()[0].options().get_lr());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) throw acc::Error({.what = "train save|load FOLDER OPTIMIZER"});
  train(argv[1], argv[2], argv[3]);
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
