// SPDX-License-Identifier: Apache-2.0
// schedulers_test.cpp checks that the values equal Python's.
#include "acc/runtime/optim/learning_rate.hpp"

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
