// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/muon.hpp"

#include <torch/torch.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace muon_test {

using acc::Muon;
using acc::MuonOptions;
using acc::test::error_of;

namespace {

// As in record_optimizers.py.
at::Tensor cosines(at::IntArrayRef shape, double step) {
  const std::int64_t size = c10::multiply_integers(shape);
  return (torch::arange(size, torch::kDouble) * 0.7 + step).cos().to(torch::kFloat).reshape(shape);
}

}  // namespace

TEST_CASE("muon: the parameters of 200 steps are those of PyTorch", "[runtime]") {
  const std::map<std::string, MuonOptions> cases = {
      {"muon", MuonOptions(0.01)},
      {"all_options_of_muon",
       MuonOptions(0.01).weight_decay(0.05).momentum(0.9).nesterov(false).ns_steps(3).adjust_lr_fn(
           "match_rms_adamw")}};
  const auto recorded = nlohmann::json::parse(acc::read_file(ACC_TEST_DATA "/runtime/optimizers.json"));
  for (const auto& [name, options] : cases) {
    INFO(name);
    std::vector<at::Tensor> trained = {cosines({4, 3}, 0.5).requires_grad_(),
                                       cosines({2, 5}, 0.5).requires_grad_()};
    Muon optimizer(trained, options);
    for (int number = 1; number <= 200; ++number) {
      for (at::Tensor& parameter : trained)
        parameter.mutable_grad() = cosines(parameter.sizes(), number) * (1 + number % 3);
      optimizer.step();
      const auto point = recorded[name].find(std::to_string(number));
      if (point == recorded[name].end()) continue;
      INFO("step " << number);
      for (std::size_t i = 0; i < trained.size(); ++i) {
        const at::Tensor expected = torch::tensor(point->at(i).get<std::vector<float>>());
        // Processors round products in bfloat16 differently.
        CHECK(trained[i].detach().flatten().sub(expected).abs().max().item<double>() < 5e-3);
      }
    }
  }
}

TEST_CASE("muon: what is not a matrix, a sparse gradient and an unknown adjustment are refused",
          "[runtime]") {
  CHECK(error_of([] { Muon(std::vector<at::Tensor>{torch::ones({5})}); }) ==
        "Muon: a parameter is [5], not a matrix (give it to another optimizer, such as AdamW)");
  const at::Tensor weight = torch::ones({3, 2}).requires_grad_();
  Muon optimizer(std::vector<at::Tensor>{weight}, MuonOptions().adjust_lr_fn("double"));
  optimizer.step();
  CHECK(weight.equal(torch::ones({3, 2})));
  weight.mutable_grad() = torch::eye(3, 2);
  CHECK(error_of([&] { optimizer.step(); }) ==
        "Muon: adjust_lr_fn: 'double' is not one of its values (use original or match_rms_adamw)");
  weight.mutable_grad() = torch::eye(3, 2).to_sparse();
  CHECK(error_of([&] { optimizer.step(); }) == "Muon: does not take sparse gradients (SGD and Adagrad do)");
}

}  // namespace muon_test
