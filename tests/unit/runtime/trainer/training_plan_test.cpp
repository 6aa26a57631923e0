// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/training_plan.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace training_plan_test {

using acc::detail::plan_rest;
using acc::detail::plan_training;
using acc::detail::steps_of;
using acc::detail::TrainingPlan;
using acc::test::error_of;

TEST_CASE("training_plan: epochs of known data are counted in steps of the optimizer", "[runtime]") {
  acc::TrainingArguments arguments;
  arguments.per_device_train_batch_size = 4;
  arguments.gradient_accumulation_steps = 2;
  arguments.num_train_epochs = 2.5;
  const TrainingPlan plan = plan_training(arguments, 3, {{.batches = 7, .examples = 80}});
  CHECK(plan.total_train_batch_size == 24);
  CHECK(plan.batches_in_epoch == 7);
  CHECK(plan.num_update_steps_per_epoch == 4);
  CHECK(plan.max_steps == 10);
  CHECK(plan.num_train_epochs == 3);
  CHECK(plan.num_train_samples == 200);
}

TEST_CASE("training_plan: max_steps overrides the epochs", "[runtime]") {
  acc::TrainingArguments arguments;
  arguments.max_steps = 9;
  const TrainingPlan plan = plan_training(arguments, 1, {{.batches = 4, .examples = 32}});
  CHECK(plan.max_steps == 9);
  CHECK(plan.num_train_epochs == 3);
  CHECK(plan.num_train_samples == 72);
}

TEST_CASE("training_plan: data of unknown size needs max_steps, and data without batches is refused",
          "[runtime]") {
  acc::TrainingArguments arguments;
  CHECK(error_of([&] { plan_training(arguments, 1, {}); }) ==
        "max_steps: is required, since the size of the training data is not known");
  CHECK(error_of([&] { plan_training(arguments, 1, {{}}); }) ==
        "Trainer: the training data has no batches (it is empty)");
  arguments.max_steps = 9;
  CHECK(plan_training(arguments, 2, {}).num_examples == 9 * 16);
}

TEST_CASE("training_plan: what is left of a training in steps of another size", "[runtime]") {
  acc::TrainingArguments arguments;
  const auto rest = [&](std::int64_t global_step, const acc::LoaderPosition& from) {
    TrainingPlan plan = plan_training(arguments, 1, {{.batches = 4, .examples = 32}});
    plan_rest(plan, arguments, global_step, from);
    return plan;
  };
  SECTION("all epochs are trained to their end") {
    arguments.num_train_epochs = 3;
    CHECK(rest(10, {.epoch = 1, .batches = 2}).max_steps == 10 + 2 + 4);
    CHECK(rest(10, {.epoch = 1, .batches = 4, .finished = true}).max_steps == 10 + 4);
    CHECK(rest(10, {.epoch = 3}).max_steps == 10);
  }
  SECTION("a part of an epoch") {
    arguments.num_train_epochs = 1.5;
    CHECK(rest(10, {.epoch = 1, .batches = 1}).max_steps == 11);
  }
  SECTION("max_steps stays, and the epochs follow") {
    arguments.max_steps = 20;
    const TrainingPlan plan = rest(10, {.epoch = 1, .batches = 2});
    CHECK(plan.max_steps == 20);
    CHECK(plan.num_train_epochs == 2 + 2);
  }
}

TEST_CASE("training_plan: less than one step is a fraction of all", "[runtime]") {
  CHECK(steps_of(0.05, 90) == 5);
  CHECK(steps_of(0, 90) == 0);
  CHECK(steps_of(1, 90) == 1);
  CHECK(steps_of(500, 90) == 500);
}

}  // namespace training_plan_test
