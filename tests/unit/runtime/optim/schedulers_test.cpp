// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/schedulers.hpp"

#include <ATen/ops/zeros.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"

namespace schedulers_test {

namespace {

using acc::PlateauOptions;
using nlohmann::json;

std::vector<at::Tensor> parameters() {
  return {at::zeros({1}).set_requires_grad(true)};
}

torch::optim::SGD sgd(double rate = 0.1) {
  return torch::optim::SGD(parameters(), torch::optim::SGDOptions(rate).momentum(0.9));
}

double rate_of(torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups()[0].options().get_lr();
}
double momentum_of(torch::optim::Optimizer& optimizer) {
  return static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options()).momentum();
}

bool near(double one, double other) {
  return std::abs(one - other) <= 1e-12;
}

const json& recorded() {
  static const json table = json::parse(acc::read_file(ACC_TEST_DATA "/runtime/schedules.json"));
  return table;
}

// As in record_schedules.py.
double metric(int step) {
  return 1 + 1.0 / (1 + step / 20) + (step * 7 % 5) * 0.001;
}
const PlateauOptions kPlateau{.factor = 0.5, .patience = 4, .threshold = 0.01, .cooldown = 3, .min_lr = 1e-4};

const acc::GreedyOptions kGreedy{.factor = 0.8,
                                 .patience = 3,
                                 .threshold = 0.01,
                                 .cooldown = 2,
                                 .warmup = 3,
                                 .min_lr = 0.02,
                                 .max_lr = 0.4,
                                 .reset_start = 4};
const acc::GreedyOptions kSmooth{.factor = 0.9,
                                 .patience = 2,
                                 .threshold = 1e-4,
                                 .threshold_mode = PlateauOptions::ThresholdMode::rel,
                                 .smooth = true,
                                 .window_size = 7,
                                 .reset_start = 30};

std::map<std::string, acc::Schedule> schedules() {
  return {
      {"step", acc::step_lr(90, 0.5)},
      {"multi_step", acc::multi_step_lr({100, 300, 300, 800}, 0.3)},
      {"exponential", acc::exponential_lr(0.995)},
      {"linear", acc::linear_lr(0.1, 0.8, 300)},
      {"cosine", acc::cosine_annealing_lr(150, 0.001)},
      {"warm_restarts", acc::cosine_annealing_warm_restarts(50, 2, 0.001)},
      {"warm_restarts_even", acc::cosine_annealing_warm_restarts(130)},
      {"one_cycle", acc::one_cycle_lr({.max_lr = {0.4}, .total_steps = 1000})},
      {"one_cycle_three_phase", acc::one_cycle_lr({.max_lr = {0.4},
                                                   .total_steps = 1000,
                                                   .pct_start = 0.2,
                                                   .anneal_strategy = acc::Anneal::linear,
                                                   .div_factor = 10,
                                                   .three_phase = true})},
      {"lambda",
       acc::lambda_lr([](std::int64_t step) { return 1 / (1 + 0.01 * static_cast<double>(step)); })},
      {"sequential", acc::sequential_lr({acc::linear_lr(0.1, 1, 60), acc::cosine_annealing_lr(400, 0.001),
                                         acc::step_lr(100, 0.5)},
                                        {60, 500})},
      {"linear_warmup", acc::linear_with_warmup(100, 900)},
      {"cosine_warmup", acc::cosine_with_warmup(100, 900)},
      {"cosine_warmup_cycles", acc::cosine_with_warmup(30, 1000, 1.5)},
      {"polynomial_warmup", acc::polynomial_with_warmup(100, 900, 0.0005, 2)},
  };
}

// Compares the optimizer with the points of a table over all steps, `step(i)` going from i to i + 1.
template <class Step>
void check_table(const json& points, torch::optim::Optimizer& optimizer, Step step) {
  REQUIRE(points.size() > 150);
  REQUIRE(points.back()[0] == 1000);
  std::size_t next = 0;
  for (int i = 0; i <= 1000; ++i) {
    if (points[next][0] == i) {
      INFO("step " << i << ": " << rate_of(optimizer) << ", Python: " << points[next].dump());
      CHECK(near(rate_of(optimizer), points[next][1]));
      if (points[next].size() > 2) CHECK(near(momentum_of(optimizer), points[next][2]));
      ++next;
    }
    if (i < 1000) step(i);
  }
  CHECK(next == points.size());
}

}  // namespace

TEST_CASE("schedulers: every rate and momentum of 1,000 steps equals Python's", "[runtime]") {
  CHECK(recorded().size() == schedules().size() + 4);  // torch's version, and those with a metric
  for (const auto& [name, schedule] : schedules()) {
    INFO(name);
    auto optimizer = sgd();
    acc::Scheduler scheduler(optimizer, schedule);
    check_table(recorded()[name], optimizer, [&](int /*step*/) { scheduler.step(); });
  }
}

TEST_CASE("schedulers: every rate of reduce_on_plateau equals Python's, also after a restore", "[runtime]") {
  auto optimizer = sgd();
  acc::ReduceOnPlateau scheduler(optimizer, kPlateau);
  check_table(recorded()["reduce_on_plateau"], optimizer, [&](int step) {
    scheduler.step(metric(step));
    acc::ReduceOnPlateau next(optimizer, kPlateau);
    next.load_state(scheduler.state());
    scheduler = next;
  });
}

TEST_CASE("schedulers: every rate of GreedyLR equals Python's, also after a restore", "[runtime]") {
  const std::map<std::string, acc::GreedyOptions> cases = {{"greedy", kGreedy}, {"greedy_smooth", kSmooth}};
  for (const auto& [name, options] : cases) {
    INFO(name);
    auto optimizer = sgd();
    acc::GreedyLr scheduler(optimizer, options);
    check_table(recorded()[name], optimizer, [&, &options = options](int step) {
      scheduler.step(metric(step));
      acc::GreedyLr next(optimizer, options);
      next.load_state(scheduler.state());
      scheduler = next;
    });
  }
}

TEST_CASE("schedulers: the state of another kind of schedule is refused", "[runtime]") {
  auto optimizer = sgd();
  acc::Scheduler steps(optimizer, acc::step_lr(3));
  acc::GreedyLr greedy(optimizer, kGreedy);
  const std::string refusal =
      "scheduler state: is that of another kind of schedule (resume with the schedule of the checkpoint)";
  CHECK_THROWS_WITH(steps.load_state(greedy.state()), refusal);
  CHECK_THROWS_WITH(greedy.load_state(steps.state()), refusal);
}

TEST_CASE("schedulers: GreedyLR goes on after a metric that was not finite", "[runtime]") {
  const double infinity = std::numeric_limits<double>::infinity();
  auto optimizer = sgd();
  auto other = sgd();
  acc::GreedyLr scheduler(optimizer, kSmooth);
  for (int step = 0; step < 20; ++step) scheduler.step(step == 5 ? infinity : metric(step));
  acc::GreedyLr restored(other, kSmooth);
  restored.load_state(scheduler.state());
  for (int step = 20; step < 60; ++step) {
    scheduler.step(metric(step));
    restored.step(metric(step));
    CHECK(restored.last_lr() == scheduler.last_lr());
  }
}

TEST_CASE("schedulers: reduce_on_plateau is restored from before its first step", "[runtime]") {
  auto optimizer = sgd();
  acc::ReduceOnPlateau scheduler(optimizer, kPlateau);
  nlohmann::json state = nlohmann::json::parse(scheduler.state());
  state.erase("best");  // as in a checkpoint: Python cannot read a null
  scheduler.step(3);
  const std::string last_state = scheduler.state();
  scheduler.load_state(state.dump());
  scheduler.step(3);
  CHECK(scheduler.state() == last_state);
}

TEST_CASE("schedulers: a restored one continues like the one that was saved", "[runtime]") {
  for (const auto& [name, schedule] : schedules()) {
    INFO(name);
    auto optimizer = sgd();
    acc::Scheduler scheduler(optimizer, schedule);
    for (int i = 0; i < 130; ++i) scheduler.step();
    auto other = sgd(0.7);
    acc::Scheduler restored(other, schedule);
    restored.load_state(scheduler.state());
    CHECK(restored.last_epoch() == 130);
    CHECK(rate_of(other) == rate_of(optimizer));
    for (int i = 0; i < 500; ++i) {
      scheduler.step();
      restored.step();
    }
    CHECK(rate_of(other) == rate_of(optimizer));
    CHECK(restored.state() == scheduler.state());
  }
}

TEST_CASE("schedulers: each parameter group keeps its own base", "[runtime]") {
  auto optimizer = sgd(0.1);
  optimizer.add_param_group(
      torch::optim::OptimizerParamGroup(parameters(), std::make_unique<torch::optim::SGDOptions>(0.5)));
  acc::Scheduler scheduler(optimizer, acc::step_lr(1, 0.5));
  scheduler.step();
  CHECK(scheduler.last_lr() == std::vector<double>{0.05, 0.25});
}

TEST_CASE("schedulers: a parameter group that is added later is scheduled from its own rate on",
          "[runtime]") {
  torch::optim::SGD optimizer = sgd(0.1);
  acc::Scheduler scheduler(optimizer, acc::step_lr(1, 0.5));
  scheduler.step();
  optimizer.add_param_group(
      torch::optim::OptimizerParamGroup(parameters(), std::make_unique<torch::optim::SGDOptions>(0.4)));
  scheduler.step();
  REQUIRE(scheduler.last_lr().size() == 2);
  CHECK(near(scheduler.last_lr()[0], 0.025));
  CHECK(near(scheduler.last_lr()[1], 0.2));
  scheduler.load_state(scheduler.state());
}

TEST_CASE("schedulers: one-cycle cycles AdamW's first beta, and refuses an optimizer without momentum",
          "[runtime]") {
  const acc::Schedule cycle = acc::one_cycle_lr({.max_lr = {0.1}, .total_steps = 10});
  torch::optim::AdamW adamw(parameters());
  const acc::Scheduler scheduler(adamw, cycle);
  const auto& options = static_cast<torch::optim::AdamWOptions&>(adamw.param_groups()[0].options());
  CHECK(options.betas() == std::tuple(0.95, 0.999));
  torch::optim::Adagrad adagrad(parameters());
  CHECK_THROWS_WITH(
      acc::Scheduler(adagrad, cycle),
      "scheduler: the optimizer has neither a momentum nor betas (set cycle_momentum to false)");
}

TEST_CASE("schedulers: an invalid state is refused and changes nothing", "[runtime]") {
  auto optimizer = sgd();
  acc::Scheduler scheduler(optimizer, acc::step_lr(3));
  scheduler.step();
  const std::string before = scheduler.state();
  CHECK_THROWS_AS(scheduler.load_state("{"), acc::Error);
  CHECK_THROWS_AS(scheduler.load_state(R"({"last_epoch": 1})"), acc::Error);
  CHECK_THROWS_WITH(scheduler.load_state(R"({"last_epoch": 7, "base_lrs": [1, 2], "_last_lr": [1, 2]})"),
                    "scheduler state: has 2 parameter groups, but the optimizer has 1");
  CHECK(scheduler.state() == before);
  CHECK(rate_of(optimizer) == 0.1);
}

}  // namespace schedulers_test
