// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/custom_optimizer.hpp"

#include <torch/torch.h>

#include <memory>

#include "acc/runtime/optim/adafactor.hpp"
#include "acc/runtime/optim/muon.hpp"
#include "support/catch.hpp"

namespace custom_optimizer_test {

namespace {

template <class Optimizer, class Options>
void check_options_of_groups() {
  const auto group = [](double weight_decay) {
    return torch::optim::OptimizerParamGroup(
        {torch::ones({2, 2})}, std::make_unique<Options>(Options(0.5).weight_decay(weight_decay)));
  };
  Optimizer optimizer({group(0.3), torch::optim::OptimizerParamGroup({torch::ones({2, 2})})}, Options(0.25));
  optimizer.add_param_group(group(0.2));
  const auto options = [&](std::size_t index) {
    return static_cast<const Options&>(optimizer.param_groups().at(index).options());
  };
  CHECK(options(0).lr() == 0.5);
  CHECK(options(0).weight_decay() == 0.3);
  CHECK(options(1).lr() == 0.25);
  CHECK(options(2).lr() == 0.5);
  CHECK(options(2).weight_decay() == 0.2);
}

}  // namespace

TEST_CASE("custom_optimizer: a group's own options count", "[runtime]") {
  check_options_of_groups<acc::Adafactor, acc::AdafactorOptions>();
  check_options_of_groups<acc::Muon, acc::MuonOptions>();
}

}  // namespace custom_optimizer_test
