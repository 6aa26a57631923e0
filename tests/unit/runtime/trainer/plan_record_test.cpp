// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/plan_record.hpp"

#include "support/catch.hpp"

namespace plan_record_test {

using acc::detail::PlanRecord;
using acc::detail::TrainingPlan;

TEST_CASE("plan_record: a checkpoint tells whether its training had the same plan", "[runtime]") {
  const TrainingPlan plan{.num_train_epochs = 3, .max_steps = 12, .total_train_batch_size = 8};
  TrainingPlan larger_steps = plan;
  larger_steps.total_train_batch_size = 16;
  PlanRecord saved;
  saved.set(plan);
  PlanRecord record;
  record.set(plan);
  record.load_state(saved.state());
  CHECK(record.is_loaded({}));
  record.set(larger_steps);
  record.load_state(saved.state());
  CHECK_FALSE(record.is_loaded({}));
}

TEST_CASE("plan_record: transformers' checkpoints, which have none, tell by their steps and epochs",
          "[runtime]") {
  PlanRecord record;
  record.set({.num_train_epochs = 3, .max_steps = 12});
  CHECK(record.is_loaded({.max_steps = 12, .num_train_epochs = 3}));
  CHECK_FALSE(record.is_loaded({.max_steps = 12, .num_train_epochs = 4}));
}

}  // namespace plan_record_test
