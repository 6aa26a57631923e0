// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/training_record.hpp"

#include "support/catch.hpp"

namespace training_record_test {

using acc::detail::TrainingPlan;
using acc::detail::TrainingRecord;

TEST_CASE("training_record: a checkpoint tells whether its training had the same plan", "[runtime]") {
  const TrainingPlan plan{.num_train_epochs = 3, .max_steps = 12, .total_train_batch_size = 8};
  TrainingPlan larger_steps = plan;
  larger_steps.total_train_batch_size = 16;
  TrainingRecord saved;
  saved.set(plan);
  TrainingRecord record;
  record.set(plan);
  record.load_state(saved.state());
  CHECK(record.is_loaded({}));
  record.set(larger_steps);
  record.load_state(saved.state());
  CHECK_FALSE(record.is_loaded({}));
}

TEST_CASE("training_record: a training that goes on knows after which steps it has saved", "[runtime]") {
  TrainingRecord saved;
  saved.set({.max_steps = 12});
  saved.set_saved_steps({3, 12});
  TrainingRecord record;
  record.set({.max_steps = 12});
  record.load_state(saved.state());
  CHECK(record.is_loaded({}));
  CHECK(record.saved_steps() == std::set<std::int64_t>{3, 12});
  record.load_state(R"({"max_steps": 12})");
  CHECK(record.saved_steps().empty());
  record.load_state(saved.state());
  record.set({});
  CHECK(record.saved_steps().empty());
}

TEST_CASE("training_record: a training that goes on knows whether its epoch had its end", "[runtime]") {
  TrainingRecord saved;
  saved.set({.max_steps = 12});
  saved.set_epoch_ended(true);
  TrainingRecord record;
  record.set({.max_steps = 12});
  CHECK_FALSE(record.epoch_ended());
  record.load_state(saved.state());
  CHECK(record.is_loaded({}));
  CHECK(record.epoch_ended());
  record.load_state(R"({"max_steps": 12})");
  CHECK_FALSE(record.epoch_ended());
}

TEST_CASE("training_record: transformers' checkpoints, which have none, tell by their steps and epochs",
          "[runtime]") {
  TrainingRecord record;
  record.set({.num_train_epochs = 3, .max_steps = 12});
  CHECK(record.is_loaded({.max_steps = 12, .num_train_epochs = 3}));
  CHECK_FALSE(record.is_loaded({.max_steps = 12, .num_train_epochs = 4}));
}

}  // namespace training_record_test
