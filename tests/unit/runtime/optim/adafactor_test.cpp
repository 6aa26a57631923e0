// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/adafactor.hpp"

#include <torch/torch.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace adafactor_test {

using acc::Adafactor;
using acc::AdafactorOptions;

namespace {

// As in record_optimizers.py.
at::Tensor numbers(at::IntArrayRef shape, double step) {
  const std::int64_t size = c10::multiply_integers(shape);
  return (torch::arange(size, torch::kDouble) * 0.7 + step).cos().to(torch::kFloat).reshape(shape);
}

std::vector<at::Tensor> parameters(at::ScalarType type = torch::kFloat) {
  std::vector<at::Tensor> all;
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{4, 3}, {5}, {2, 3, 4}})
    all.push_back(numbers(shape, 0.5).to(type).requires_grad_());
  return all;
}

void step(Adafactor& optimizer, int number) {
  for (at::Tensor& parameter : optimizer.param_groups().front().params())
    parameter.mutable_grad() =
        (numbers(parameter.sizes(), number) * (1 + number % 3)).to(parameter.scalar_type());
  optimizer.step();
}

}  // namespace

TEST_CASE("adafactor: the parameters of 200 steps are those of transformers", "[runtime]") {
  const std::map<std::string, AdafactorOptions> cases = {
      {"plain", AdafactorOptions(0.01)},
      {"all_options",
       AdafactorOptions(0.01).beta1(0.9).weight_decay(0.05).clip_threshold(0.5).decay_rate(-0.6).eps(
           {1e-6, 1e-3})}};
  const auto recorded = nlohmann::json::parse(acc::read_file(ACC_TEST_DATA "/runtime/optimizers.json"));
  for (const auto& [name, options] : cases) {
    INFO(name);
    const std::vector<at::Tensor> trained = parameters();
    Adafactor optimizer(trained, options);
    for (int number = 1; number <= 200; ++number) {
      step(optimizer, number);
      const auto point = recorded[name].find(std::to_string(number));
      if (point == recorded[name].end()) continue;
      INFO("step " << number);
      for (std::size_t i = 0; i < trained.size(); ++i) {
        const at::Tensor expected = torch::tensor(point->at(i).get<std::vector<float>>());
        CHECK(trained[i].detach().flatten().sub(expected).abs().max().item<double>() < 1e-6);
      }
    }
  }
}

TEST_CASE("adafactor: parameters in half precision step in float", "[runtime]") {
  const std::vector<at::Tensor> full = parameters();
  const std::vector<at::Tensor> half = parameters(torch::kBFloat16);
  Adafactor optimizer(full, AdafactorOptions(0.1));
  Adafactor other(half, AdafactorOptions(0.1));
  step(optimizer, 1);
  step(other, 1);
  CHECK(half[0].scalar_type() == torch::kBFloat16);
  CHECK(torch::allclose(half[0].to(torch::kFloat), full[0], 0, 0.02));
}

TEST_CASE("adafactor: a parameter without a gradient stays, and a sparse gradient is refused", "[runtime]") {
  const at::Tensor weight = torch::ones({3, 2}).requires_grad_();
  Adafactor optimizer(std::vector<at::Tensor>{weight});
  optimizer.step();
  CHECK(weight.equal(torch::ones({3, 2})));
  weight.mutable_grad() = torch::eye(3, 2).to_sparse();
  CHECK(acc::test::error_of([&] { optimizer.step(); }) ==
        "Adafactor: does not take sparse gradients (SGD and Adagrad do)");
}

}  // namespace adafactor_test
