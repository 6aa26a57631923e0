// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/accelerated_scheduler.hpp"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <limits>

#include "acc/base/error.hpp"
#include "acc/runtime/optim/grad_scaler.hpp"
#include "acc/runtime/optim/schedulers.hpp"
#include "support/catch.hpp"

namespace accelerated_scheduler_test {

namespace {

std::shared_ptr<torch::optim::SGD> sgd() {
  return std::make_shared<torch::optim::SGD>(std::vector<at::Tensor>{at::zeros({1}).set_requires_grad(true)},
                                             1.0);
}

// A schedule whose rate is the number of its steps.
acc::AcceleratedScheduler<acc::Scheduler> counting(torch::optim::Optimizer& optimizer,
                                                   acc::detail::SchedulerRule rule) {
  acc::Schedule schedule = acc::lambda_lr([](std::int64_t step) { return static_cast<double>(step); });
  schedule.total_steps = 5;
  return {std::make_shared<acc::Scheduler>(optimizer, schedule), std::move(rule)};
}

}  // namespace

TEST_CASE("accelerated_scheduler: a step of the optimizer is a step for each process, up to total_steps",
          "[runtime]") {
  const auto native = sgd();
  auto gradients = std::make_shared<acc::GradientState>(2);
  auto scheduler = counting(*native, {.gradients = gradients, .steps = 2});
  std::vector<std::int64_t> steps;
  for (int batch = 0; batch < 8; ++batch) {
    gradients->next_batch(false);
    scheduler.step();
    steps.push_back(scheduler->last_epoch());
  }
  CHECK(steps == std::vector<std::int64_t>{0, 2, 2, 4, 4, 5, 5, 5});
}

TEST_CASE("accelerated_scheduler: it does not step when the optimizer skipped a step", "[runtime]") {
  const auto native = sgd();
  auto gradients = std::make_shared<acc::GradientState>();
  auto scaler = std::make_shared<acc::GradScaler>();
  acc::Optimizer optimizer(native, gradients, scaler);
  auto scheduler = counting(*native, {.gradients = gradients, .optimizers = {optimizer}});
  const auto step = [&](double gradient) {
    scaler->scale(at::full({}, 1.0));
    native->param_groups()[0].params()[0].mutable_grad() = at::full({1}, gradient, at::kFloat);
    optimizer.step();
    scheduler.step();
    return scheduler->last_epoch();
  };
  CHECK(step(1) == 1);
  CHECK(step(std::numeric_limits<double>::quiet_NaN()) == 1);
  CHECK(step(1) == 2);
}

TEST_CASE("accelerated_scheduler: without step_with_optimizer each call is one step", "[runtime]") {
  const auto native = sgd();
  auto gradients = std::make_shared<acc::GradientState>(4);
  auto scheduler = counting(*native, {.gradients = gradients, .step_with_optimizer = false, .steps = 3});
  gradients->next_batch(false);
  scheduler.step();
  CHECK(scheduler->last_epoch() == 1);
}

TEST_CASE("accelerated_scheduler: LibTorch's schedulers and one that takes a metric step the same way",
          "[runtime]") {
  const auto native = sgd();
  const acc::detail::SchedulerRule rule{.gradients = std::make_shared<acc::GradientState>(), .steps = 2};
  acc::AcceleratedScheduler step(std::make_shared<torch::optim::StepLR>(*native, 2, 0.1), rule);
  step.step();
  CHECK(native->param_groups()[0].options().get_lr() == 1.0);
  step.step();
  CHECK(native->param_groups()[0].options().get_lr() == 0.1);
  acc::AcceleratedScheduler plateau(
      std::make_shared<acc::ReduceOnPlateau>(*native, acc::PlateauOptions{.patience = 0}), rule);
  plateau.step(1.0);
  CHECK(std::abs(plateau->last_lr()[0] - 0.01) < 1e-12);
}

namespace {

torch::optim::SGD sgd_by_value() {
  return torch::optim::SGD({at::zeros({1}).set_requires_grad(true)}, 1.0);
}
double rate_of(torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups()[0].options().get_lr();
}

}  // namespace

TEST_CASE("torch_scheduler: a restored one continues where it was saved", "[runtime]") {
  torch::optim::SGD optimizer = sgd_by_value();
  torch::optim::StepLR saved(optimizer, 3, 0.1);
  saved.step();
  saved.step();
  torch::optim::SGD other = sgd_by_value();
  torch::optim::StepLR loaded(other, 3, 0.1);
  acc::detail::load_scheduler_state(loaded, acc::detail::scheduler_state(saved));
  for (int step = 0; step < 2; ++step) {
    saved.step();
    loaded.step();
    CHECK(rate_of(other) == rate_of(optimizer));
  }
  CHECK(rate_of(other) == 0.1);
  CHECK_THROWS_AS(acc::detail::load_scheduler_state(loaded, "{}"), acc::Error);
}

TEST_CASE("torch_scheduler: an optimizer that was moved is detected", "[runtime]") {
  torch::optim::SGD optimizer = sgd_by_value();
  const torch::optim::StepLR scheduler(optimizer, 1);
  acc::detail::require_optimizer(scheduler);
  const torch::optim::SGD moved = std::move(optimizer);
  CHECK_THROWS_WITH(
      acc::detail::require_optimizer(scheduler),
      "prepare: scheduler: its optimizer has been moved (create the optimizer with std::make_shared, "
      "or the scheduler with the prepared optimizer's native())");
}

}  // namespace accelerated_scheduler_test
