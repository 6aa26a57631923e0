// SPDX-License-Identifier: Apache-2.0
// schedulers_test.cpp checks that the values equal Python's.
#include "acc/runtime/optim/learning_rate.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace learning_rate_test {

using acc::test::error_of;

TEST_CASE("learning_rate: invalid arguments are named", "[runtime]") {
  CHECK(error_of([] { acc::step_lr(0); }) == "step_lr: step_size: must be at least 1");
  CHECK(error_of([] { acc::linear_lr(0); }) == "linear_lr: start_factor: must be above 0 and at most 1");
  CHECK(error_of([] { acc::one_cycle_lr({.total_steps = 9}); }) == "one_cycle_lr: max_lr: is missing");
  CHECK(error_of([] { acc::sequential_lr({acc::step_lr(1), acc::step_lr(1)}, {}); }) ==
        "sequential_lr: 2 schedules need one milestone fewer than that, not 0");
  CHECK(error_of([] { acc::sequential_lr({acc::step_lr(1), acc::step_lr(1), acc::step_lr(1)}, {5, 3}); }) ==
        "sequential_lr: milestones: must be sorted");
  CHECK(error_of([] { acc::polynomial_with_warmup(0, 10, 0.5).rate({.base = 0.1}); }) ==
        "polynomial_with_warmup: lr_end: must be below the optimizer's rate, which is 0.1");
  CHECK(error_of([] { acc::polynomial_with_warmup(0, 10, 0, -1); }) ==
        "polynomial_with_warmup: power: must not be negative");
  CHECK(error_of([] { acc::one_cycle_lr({.max_lr = {0.1}, .total_steps = 9, .div_factor = 0}); }) ==
        "one_cycle_lr: div_factor: must be greater than 0");
  CHECK(error_of([] { acc::one_cycle_lr({.max_lr = {0.1}, .total_steps = 9, .final_div_factor = 0}); }) ==
        "one_cycle_lr: final_div_factor: must be greater than 0");
}

TEST_CASE("learning_rate: schedules with a warm-up are finite to the end and beyond, however long it is",
          "[runtime]") {
  const std::int64_t steps = GENERATE(1, 2, 5);
  const std::int64_t warmup = GENERATE(0, 1, 2, 4, 5, 6);
  const std::vector<acc::Schedule> schedules = {
      acc::linear_with_warmup(warmup, steps), acc::cosine_with_warmup(warmup, steps),
      acc::polynomial_with_warmup(warmup, steps), acc::polynomial_with_warmup(warmup, steps, 0, 2)};
  for (std::int64_t step = 0; step <= steps + 1; ++step) {
    for (std::size_t i = 0; i < schedules.size(); ++i) {
      INFO("schedule " << i << " of " << steps << " steps, " << warmup << " of warm-up, at " << step);
      const double rate = schedules[i].rate({.step = step, .base = 0.1, .current = 0.1});
      CHECK(std::isfinite(rate));
      CHECK(rate >= 0);
    }
  }
}

TEST_CASE("learning_rate: a warm-up of all steps ends at the last rate", "[runtime]") {
  const acc::Schedule schedule = acc::polynomial_with_warmup(4, 4, 0.01);
  CHECK(schedule.rate({.step = 3, .base = 0.1}) == Approx(0.075));
  CHECK(schedule.rate({.step = 4, .base = 0.1}) == 0.01);
}

TEST_CASE("learning_rate: a one-cycle schedule is finite, and positive, however long it rises", "[runtime]") {
  const auto [steps, part] =
      GENERATE(table<std::int64_t, double>({{10, 0.1}, {20, 0.05}, {100, 0.01}, {2, 0.5}, {1, 1}, {1, 0.3}}),
               table<std::int64_t, double>({{10, 0}, {10, 1}, {10, 0.55}, {10, 0.3}, {2, 1}}));
  const acc::Schedule cycle =
      acc::one_cycle_lr({.max_lr = {0.1},
                         .total_steps = steps,
                         .pct_start = part,
                         .anneal_strategy = GENERATE(acc::Anneal::cos, acc::Anneal::linear),
                         .three_phase = GENERATE(false, true)});
  for (std::int64_t step = 0; step <= steps; ++step) {
    INFO("of " << steps << " steps a part of " << part << " rises, at " << step);
    const double rate = cycle.rate({.step = step, .base = 0.1, .current = 0.1});
    CHECK(std::isfinite(rate));
    CHECK(std::isfinite(cycle.momentum({.step = step, .base = 0.9, .current = 0.9})));
    if (step < steps) CHECK(rate > 0);
    CHECK(rate <= 0.1);
  }
  if (part * double(steps) == 1) CHECK(cycle.rate({.step = 0, .base = 0.1}) == Approx(0.1));
}

TEST_CASE("learning_rate: a one-cycle schedule cannot exceed its steps", "[runtime]") {
  const acc::Schedule cycle = acc::one_cycle_lr({.max_lr = {0.1}, .total_steps = 4});
  CHECK(cycle.rate({.step = 4}) > 0);
  CHECK(error_of([&] { cycle.rate({.step = 5}); }) == "one_cycle_lr: step 5 is past total_steps, which is 4");
}

TEST_CASE("learning_rate: a cycle has its own maximum for each parameter group", "[runtime]") {
  const acc::Schedule cycle = acc::one_cycle_lr({.max_lr = {0.25, 0.5}, .total_steps = 10});
  CHECK(cycle.rate({.step = 0, .group = 1}) == 2 * cycle.rate({.step = 0, .group = 0}));
  CHECK(error_of([&] { cycle.rate({.step = 0, .group = 2}); }) ==
        "one_cycle_lr: max_lr: needs one value, or one for each parameter group");
}

}  // namespace learning_rate_test
