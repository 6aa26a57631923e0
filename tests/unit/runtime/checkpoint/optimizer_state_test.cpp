// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/optimizer_state.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/optim/adafactor.hpp"
#include "acc/runtime/optim/muon.hpp"
#include "acc/runtime/tensors/random.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

namespace optimizer_state_test {

namespace {

using acc::PtDict;
using acc::PtList;
using acc::PtValue;
using OptimizerPointer = std::unique_ptr<torch::optim::Optimizer>;

using Make = std::function<OptimizerPointer(std::vector<at::Tensor>)>;

// Every type of optimizer, with every field of its state in use.
const std::vector<std::pair<std::string, Make>>& kinds() {
  using namespace torch::optim;
  static const std::vector<std::pair<std::string, Make>> all = {
      {"sgd", [](auto p) { return std::make_unique<SGD>(p, SGDOptions(0.1).momentum(0.9).nesterov(true)); }},
      {"plain_sgd", [](auto p) { return std::make_unique<SGD>(p, SGDOptions(0.1)); }},
      {"adam", [](auto p) { return std::make_unique<Adam>(p, AdamOptions(0.01).amsgrad(true)); }},
      {"adamw", [](auto p) { return std::make_unique<AdamW>(p, AdamWOptions(0.01)); }},
      {"adagrad", [](auto p) { return std::make_unique<Adagrad>(p, AdagradOptions(0.1).lr_decay(0.1)); }},
      {"rmsprop",
       [](auto p) {
         return std::make_unique<RMSprop>(p, RMSpropOptions(0.01).momentum(0.5).centered(true));
       }},
      {"adafactor",
       [](auto p) { return std::make_unique<acc::Adafactor>(p, acc::AdafactorOptions(0.1).beta1(0.9)); }},
      {"plain_adafactor",
       [](auto p) { return std::make_unique<acc::Adafactor>(p, acc::AdafactorOptions(0.1)); }},
      {"muon",
       [](auto p) {
         return std::make_unique<acc::Muon>(std::vector{p[0]}, acc::MuonOptions(0.1).ns_steps(3));
       }},
      {"lbfgs",
       [](auto p) { return std::make_unique<LBFGS>(p, LBFGSOptions(0.5).max_iter(3).history_size(4)); }},
      {"searching_lbfgs",
       [](auto p) {
         return std::make_unique<LBFGS>(p, LBFGSOptions(0.5).max_iter(2).line_search_fn("strong_wolfe"));
       }},
  };
  return all;
}

void train(torch::nn::Linear& net, torch::optim::Optimizer& optimizer, int steps) {
  for (int step = 0; step < steps; ++step) {
    const at::Tensor x = at::randn({4, 3}).to(net->weight.scalar_type());
    optimizer.step([&] {
      optimizer.zero_grad();
      at::Tensor loss = net->forward(x).square().mean();
      loss.backward();
      return loss;
    });
  }
}

torch::nn::Linear copy_of(const torch::nn::Linear& net) {
  torch::nn::Linear copy(3, 2);
  copy->to(net->weight.scalar_type());
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < net->parameters().size(); ++i)
    copy->parameters()[i].copy_(net->parameters()[i]);
  return copy;
}

std::string error_of(torch::optim::Optimizer& optimizer, const PtValue& state) {
  return acc::test::error_of([&] { acc::detail::plan_optimizer_load(optimizer, state, "f"); });
}

}  // namespace

TEST_CASE("optimizer state: training continues bit for bit after saving and loading", "[runtime]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16, at::kHalf);
  for (const auto& [name, make] : kinds()) {
    CAPTURE(name, type);
    acc::set_seed(1);
    torch::nn::Linear net(3, 2);
    net->to(type);
    const OptimizerPointer optimizer = make(net->parameters());
    train(net, *optimizer, 3);
    const auto file = acc::test::temporary_folder() / "optimizer.bin";
    acc::write_pt_file(file, acc::detail::optimizer_state(*optimizer));

    torch::nn::Linear other = copy_of(net);
    const OptimizerPointer loaded = make(other->parameters());
    loaded->param_groups()[0].options().set_lr(7);
    acc::detail::plan_optimizer_load(*loaded, acc::read_pt_file(file), file.string())();
    CHECK(loaded->param_groups()[0].options().get_lr() == optimizer->param_groups()[0].options().get_lr());

    acc::set_seed(2);
    train(net, *optimizer, 3);
    acc::set_seed(2);
    train(other, *loaded, 3);
    CHECK(other->weight.equal(net->weight));
    CHECK(other->bias.equal(net->bias));
  }
}

TEST_CASE("optimizer state: the form is Python's", "[runtime]") {
  torch::nn::Linear net(3, 2);
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(0.01));
  train(net, optimizer, 2);
  const PtValue state = acc::detail::optimizer_state(optimizer);
  const PtValue* first = state.find("state")->find(0);
  REQUIRE(first != nullptr);
  CHECK(first->find("step")->get_if<at::Tensor>()->scalar_type() == at::kFloat);
  CHECK(first->find("step")->number() == 2);
  CHECK(first->find("exp_avg")->get_if<at::Tensor>()->sizes() == net->weight.sizes());
  CHECK(first->find("max_exp_avg_sq") == nullptr);
  const PtValue& group = state.find("param_groups")->get_if<PtList>()->at(0);
  CHECK(group.find("lr")->number() == 0.01);
  CHECK(group.find("betas")->get_if<acc::PtTuple>()->items.at(1).number() == 0.999);
  CHECK(*group.find("decoupled_weight_decay")->get_if<bool>());
  CHECK(group.find("params")->get_if<PtList>()->at(1).number() == 1);
}

TEST_CASE("optimizer state: a parameter without a gradient has no state", "[runtime]") {
  torch::nn::Linear used(3, 2);
  torch::nn::Linear unused(3, 2);
  std::vector<at::Tensor> all = used->parameters();
  for (const at::Tensor& parameter : unused->parameters()) all.push_back(parameter);
  torch::optim::Adam optimizer(all);
  train(used, optimizer, 1);
  const PtValue state = acc::detail::optimizer_state(optimizer);
  CHECK(state.find("state")->get_if<PtDict>()->size() == 2);
  torch::optim::Adam loaded(all);
  acc::detail::plan_optimizer_load(loaded, state, "f")();
  CHECK(loaded.state().size() == 2);
}

TEST_CASE("optimizer state: one error lists everything that does not fit, and nothing is loaded",
          "[runtime]") {
  torch::nn::Linear net(3, 2);
  torch::nn::Linear wider(4, 2);
  torch::optim::Adam adam(net->parameters());
  torch::optim::Adam other(wider->parameters());
  torch::optim::AdamW adamw(net->parameters());
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  train(net, adam, 1);
  const PtValue state = acc::detail::optimizer_state(adam);
  CHECK(error_of(other, state) ==
        "f: parameter 0 'exp_avg' is [2, 3], the parameter is [2, 4]\n"
        "f: parameter 0 'exp_avg_sq' is [2, 3], the parameter is [2, 4]");
  CHECK(other.state().empty());
  CHECK(error_of(adamw, state) == "f: parameter group 0 is the state of Adam, not of AdamW");
  CHECK(error_of(sgd, state)
            .starts_with("f: parameter group 0 has no 'momentum': it is the state of another optimizer"));
  CHECK(error_of(adam, PtDict{}) == "f: is not the state of an optimizer");
  CHECK(error_of(adam, PtDict{{"state", PtDict{}}, {"param_groups", PtList{}}}) ==
        "f: has 0 parameter groups, the optimizer 1");
  torch::optim::Adam fewer(std::vector<at::Tensor>{net->weight});
  CHECK(error_of(fewer, state) == "f: parameter group 0 has 2 parameters, the optimizer's has 1");
}

TEST_CASE("optimizer state: a kind that acc does not know is refused", "[runtime]") {
  struct Own : torch::optim::Optimizer {
    using Optimizer::Optimizer;
    at::Tensor step(LossClosure /*closure*/) override { return {}; }
  };
  torch::nn::Linear net(3, 2);
  const Own optimizer({torch::optim::OptimizerParamGroup(net->parameters())},
                      std::make_unique<torch::optim::SGDOptions>(0.1));
  CHECK(
      acc::test::error_of([&] { acc::detail::optimizer_state(optimizer); }) ==
      "optimizer: the state of this kind of optimizer cannot be saved or loaded (SGD, Adam, AdamW, RMSprop, "
      "Adagrad, Adafactor, Muon and LBFGS can)");
}

TEST_CASE("optimizer state: that of LBFGS covers all parameters, and is empty before a step", "[runtime]") {
  torch::nn::Linear net(3, 2);
  torch::nn::Linear wider(4, 2);
  torch::optim::LBFGS optimizer(net->parameters());
  torch::optim::LBFGS other(wider->parameters());
  acc::detail::plan_optimizer_load(other, acc::detail::optimizer_state(optimizer), "f")();
  train(net, optimizer, 1);
  CHECK(error_of(other, acc::detail::optimizer_state(optimizer))
            .starts_with("f: parameter 0 'd' must have 10 elements, as many as the parameters"));
  PtValue damaged = acc::detail::optimizer_state(optimizer);
  auto& parameters = std::get<PtDict>(std::get<PtDict>(damaged.content)[0].value.content);
  for (auto& [name, value] : std::get<PtDict>(parameters[0].value.content)) {
    if (*name.get_if<std::string>() == "ro") std::get<PtList>(value.content).pop_back();
  }
  CHECK(error_of(optimizer, damaged) ==
        "f: parameter 0 has a history that is longer than history_size, or incomplete");
}

TEST_CASE("optimizer state: that of Adafactor fits its parameters, and options that it lacks are refused",
          "[runtime]") {
  torch::nn::Linear net(3, 2);
  torch::nn::Linear wider(4, 2);
  acc::Adafactor optimizer(net->parameters());
  acc::Adafactor other(wider->parameters());
  train(net, optimizer, 1);
  PtValue state = acc::detail::optimizer_state(optimizer);
  CHECK(error_of(other, state) == "f: parameter 0 'exp_avg_sq_col' is [3], the parameter is [2, 4]");
  for (auto& [name, value] :
       std::get<PtDict>(std::get<PtList>(std::get<PtDict>(state.content)[1].value.content)[0].content)) {
    if (*name.get_if<std::string>() == "relative_step") value = true;
  }
  CHECK(error_of(optimizer, state) ==
        "f: parameter group 0 has relative_step set, which acc's Adafactor lacks");
}

TEST_CASE("optimizer state: a momentum of sparse gradients goes on as a dense one", "[runtime]") {
  at::Tensor weight = at::ones({3, 2}).requires_grad_();
  torch::optim::SGD sgd({weight}, torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto step = [](torch::optim::Optimizer& optimizer, at::Tensor& parameter) {
    at::Tensor gradient = at::zeros({3, 2});
    gradient[1].fill_(1);
    parameter.mutable_grad() = gradient.to_sparse(1);
    optimizer.step();
  };
  step(sgd, weight);
  const PtValue state = acc::detail::optimizer_state(sgd);
  at::Tensor loaded = weight.detach().clone().requires_grad_();
  torch::optim::SGD other({loaded}, torch::optim::SGDOptions(0.1).momentum(0.9));
  acc::detail::plan_optimizer_load(other, state, "f")();
  step(sgd, weight);
  step(other, loaded);
  CHECK(weight[1][0].item<double>() == Approx(1 - 0.1 - 0.19));
  CHECK(loaded.equal(weight));
}

}  // namespace optimizer_state_test
