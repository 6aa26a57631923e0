// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/torch_scheduler.hpp"

#include <ATen/ops/zeros.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace {

torch::optim::SGD sgd() {
  return torch::optim::SGD({at::zeros({1}).set_requires_grad(true)}, 1.0);
}
double rate_of(torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups()[0].options().get_lr();
}

}  // namespace

TEST_CASE("torch_scheduler: a saved one goes on where it was", "[runtime]") {
  torch::optim::SGD optimizer = sgd();
  torch::optim::StepLR saved(optimizer, 3, 0.1);
  saved.step();
  saved.step();
  torch::optim::SGD other = sgd();
  torch::optim::StepLR loaded(other, 3, 0.1);
  acc::load_state_of(loaded, acc::state_of(saved));
  for (int step = 0; step < 2; ++step) {
    saved.step();
    loaded.step();
    CHECK(rate_of(other) == rate_of(optimizer));
  }
  CHECK(rate_of(other) == 0.1);
  CHECK_THROWS_AS(acc::load_state_of(loaded, "{}"), acc::Error);
}

TEST_CASE("torch_scheduler: an optimizer that was moved away is noticed", "[runtime]") {
  torch::optim::SGD optimizer = sgd();
  const torch::optim::StepLR scheduler(optimizer, 1);
  acc::require_optimizer(scheduler);
  const torch::optim::SGD moved = std::move(optimizer);
  CHECK_THROWS_WITH(
      acc::require_optimizer(scheduler),
      "prepare: scheduler: its optimizer was moved away (make the optimizer with std::make_shared, "
      "or the scheduler from the prepared optimizer's native())");
}
