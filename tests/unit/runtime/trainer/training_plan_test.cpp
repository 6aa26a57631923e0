// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/training_plan.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

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

TEST_CASE("training_plan: more steps or samples than can be counted are refused", "[runtime]") {
  acc::TrainingArguments arguments;
  const auto refusal = [&](const std::optional<acc::detail::TrainingDataSize>& size) {
    return error_of([&] { plan_training(arguments, 2, size); });
  };
  const acc::detail::TrainingDataSize size = {.batches = 4, .examples = 64};
  const std::string rest =
      ", of which at most 2^53 can be counted (make it smaller; a callback can end a training earlier)";
  arguments.num_train_epochs = 1e30;
  CHECK(refusal(size) == "num_train_epochs: gives 4e+30 steps" + rest);
  arguments.num_train_epochs = std::numeric_limits<double>::infinity();
  CHECK(refusal(size) == "num_train_epochs: gives inf steps" + rest);
  arguments.max_steps = std::numeric_limits<std::int64_t>::max();
  CHECK(refusal(size) == "max_steps: gives 9.223e+18 steps" + rest);
  CHECK(refusal({}) == "max_steps: gives 9.223e+18 steps" + rest);
  arguments.max_steps = std::int64_t{1} << 53;
  CHECK(plan_training(arguments, 2, size).num_train_epochs == std::int64_t{1} << 51);
  CHECK(refusal({}) == "max_steps: gives 1.441e+17 samples" + rest);
  arguments.max_steps = 1;
  arguments.per_device_train_batch_size = arguments.gradient_accumulation_steps =
      std::numeric_limits<int>::max();
  CHECK(refusal(size) ==
        "per_device_train_batch_size, gradient_accumulation_steps: gives 9.223e+18 samples in a step" + rest);
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
  CHECK(steps_of(std::numeric_limits<double>::infinity(), 90) == std::int64_t{1} << 53);
}

}  // namespace training_plan_test
