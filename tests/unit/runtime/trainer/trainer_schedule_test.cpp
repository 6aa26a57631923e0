// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_schedule.hpp"

#include <cmath>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace trainer_schedule_test {

using acc::SchedulerType;
using acc::detail::plateau_options_of;
using acc::detail::schedule_of;
using acc::test::error_of;

namespace {

acc::TrainingArguments of_type(SchedulerType type) {
  acc::TrainingArguments arguments;
  arguments.lr_scheduler_type = type;
  return arguments;
}

// The rate at a step of 100, where it is 1 at the highest.
double rate_at(std::int64_t step, const acc::TrainingArguments& arguments) {
  return schedule_of(arguments, 100).rate({.step = step, .base = 1, .current = 1});
}

}  // namespace

TEST_CASE("trainer_schedule: each schedule rises in its warm-up, and then has transformers' values",
          "[runtime]") {
  const auto rate = [](SchedulerType type, std::int64_t step) {
    acc::TrainingArguments arguments = of_type(type);
    arguments.warmup_steps = 20;
    CHECK(rate_at(5, arguments) == Approx(0.25));
    return rate_at(step, arguments);
  };
  CHECK(rate(SchedulerType::linear, 60) == Approx(0.5));
  CHECK(rate(SchedulerType::cosine, 60) == Approx(0.5));
  CHECK(rate(SchedulerType::polynomial, 60) == Approx(0.5).epsilon(1e-6));
  CHECK(rate(SchedulerType::constant_with_warmup, 60) == 1);
  CHECK(rate(SchedulerType::inverse_sqrt, 80) == Approx(0.5));
  CHECK(rate(SchedulerType::cosine_with_restarts, 60) == Approx(0.5));
  CHECK(rate(SchedulerType::cosine_with_restarts, 100) == 0);
}

TEST_CASE("trainer_schedule: constant schedules have no warm-up", "[runtime]") {
  const auto type =
      GENERATE(SchedulerType::constant, SchedulerType::reduce_lr_on_plateau, SchedulerType::greedy);
  acc::TrainingArguments arguments = of_type(type);
  arguments.warmup_steps = 20;
  CHECK(rate_at(0, arguments) == 1);
  CHECK(rate_at(100, arguments) == 1);
}

TEST_CASE("trainer_schedule: warm-up steps below 1 are a fraction of all steps", "[runtime]") {
  acc::TrainingArguments arguments = of_type(SchedulerType::linear);
  arguments.warmup_steps = 0.5;
  CHECK(rate_at(25, arguments) == Approx(0.5));
  CHECK(rate_at(50, arguments) == 1);
}

TEST_CASE("trainer_schedule: its numbers change a schedule, and others are refused", "[runtime]") {
  acc::TrainingArguments arguments = of_type(SchedulerType::cosine_with_restarts);
  arguments.lr_scheduler_kwargs = {{"num_cycles", 2}};
  CHECK(rate_at(25, arguments) == Approx(0.5));
  CHECK(rate_at(50, arguments) == Approx(1));
  arguments.lr_scheduler_type = SchedulerType::linear;
  CHECK(error_of([&] { schedule_of(arguments, 100); }) == "lr_scheduler_kwargs: does not take 'num_cycles'");
}

TEST_CASE("trainer_schedule: every schedule is finite to the end and beyond, however long its warm-up",
          "[runtime]") {
  acc::TrainingArguments arguments = of_type(
      GENERATE(SchedulerType::linear, SchedulerType::cosine, SchedulerType::cosine_with_restarts,
               SchedulerType::polynomial, SchedulerType::constant, SchedulerType::constant_with_warmup,
               SchedulerType::inverse_sqrt, SchedulerType::cosine_with_min_lr,
               SchedulerType::cosine_warmup_with_min_lr, SchedulerType::warmup_stable_decay));
  if (arguments.lr_scheduler_type == SchedulerType::cosine_with_min_lr ||
      arguments.lr_scheduler_type == SchedulerType::cosine_warmup_with_min_lr)
    arguments.lr_scheduler_kwargs = {{"min_lr", 1e-6}};
  if (arguments.lr_scheduler_type == SchedulerType::warmup_stable_decay)
    arguments.lr_scheduler_kwargs = {{"num_decay_steps", 2}};
  for (const int warmup : {0, 1, 3, 4, 5}) {
    arguments.warmup_steps = warmup;
    const acc::Schedule schedule = schedule_of(arguments, 4);
    for (std::int64_t step = 0; step <= 5; ++step) {
      INFO("type " << int(arguments.lr_scheduler_type) << ", warm-up " << warmup << ", step " << step);
      const double rate = schedule.rate({.step = step, .base = 1, .current = 1});
      CHECK(std::isfinite(rate));
      CHECK(rate >= 0);
    }
  }
}

TEST_CASE("trainer_schedule: a cosine ends at its minimum rate", "[runtime]") {
  acc::TrainingArguments arguments = of_type(SchedulerType::cosine_with_min_lr);
  arguments.learning_rate = 0.5;
  arguments.warmup_steps = 20;
  arguments.lr_scheduler_kwargs = {{"min_lr", 0.1}};
  CHECK(rate_at(10, arguments) == Approx(0.5));
  CHECK(rate_at(60, arguments) == Approx(0.6));
  CHECK(rate_at(100, arguments) == Approx(0.2));
  arguments.lr_scheduler_type = SchedulerType::cosine_warmup_with_min_lr;
  arguments.lr_scheduler_kwargs = {{"min_lr_rate", 0.2}};
  CHECK(rate_at(9, arguments) == Approx(0.5));
  CHECK(rate_at(59, arguments) == Approx(0.6));
  arguments.lr_scheduler_kwargs["warmup_lr_rate"] = 0.05;
  CHECK(rate_at(0, arguments) == Approx(0.05));
  CHECK(rate_at(19, arguments) == Approx(1));
}

TEST_CASE("trainer_schedule: a rate is stable between warm-up and decay, each of its shape", "[runtime]") {
  acc::TrainingArguments arguments = of_type(SchedulerType::warmup_stable_decay);
  arguments.warmup_steps = 20;
  arguments.lr_scheduler_kwargs = {{"num_decay_steps", 40}, {"min_lr_ratio", 0.2}};
  CHECK(rate_at(10, arguments) == Approx(0.6));
  CHECK(rate_at(20, arguments) == 1);
  CHECK(rate_at(60, arguments) == 1);
  CHECK(rate_at(80, arguments) == Approx(0.6));
  CHECK(rate_at(100, arguments) == Approx(0.2));
  arguments.lr_scheduler_kwargs["warmup_type"] = "cosine";
  arguments.lr_scheduler_kwargs["decay_type"] = "1-sqrt";
  CHECK(rate_at(10, arguments) == Approx(0.6));
  CHECK(rate_at(70, arguments) == Approx(0.6));
  arguments.lr_scheduler_kwargs["num_stable_steps"] = 10;
  CHECK(rate_at(40, arguments) == Approx(0.6));
}

TEST_CASE("trainer_schedule: what a schedule needs, and a word that it does not know, is named",
          "[runtime]") {
  acc::TrainingArguments arguments = of_type(SchedulerType::cosine_with_min_lr);
  const auto refusal = [&] { return error_of([&] { schedule_of(arguments, 100); }); };
  CHECK(refusal() == "lr_scheduler_kwargs: needs either min_lr or min_lr_rate");
  arguments.lr_scheduler_kwargs = {{"min_lr", 0.1}};
  arguments.learning_rate = 0;
  CHECK(refusal() ==
        "lr_scheduler_kwargs: min_lr is a part of learning_rate, which is 0 (give min_lr_rate, or a "
        "learning_rate)");
  arguments.lr_scheduler_kwargs.clear();
  arguments.lr_scheduler_type = SchedulerType::warmup_stable_decay;
  CHECK(refusal() == "lr_scheduler_kwargs: needs 'num_decay_steps'");
  arguments.lr_scheduler_kwargs = {{"num_decay_steps", 40}, {"decay_type", "steep"}};
  CHECK(refusal() ==
        "lr_scheduler_kwargs: decay_type: 'steep' is not one of its values (use one of linear, cosine, "
        "1-sqrt)");
}

TEST_CASE("trainer_schedule: the plateau is that of the metric", "[runtime]") {
  acc::TrainingArguments arguments = of_type(SchedulerType::reduce_lr_on_plateau);
  arguments.lr_scheduler_kwargs = {{"patience", 3}, {"factor", 0.5}};
  CHECK(plateau_options_of(arguments).mode == acc::PlateauOptions::Mode::min);
  arguments.greater_is_better = true;
  const acc::PlateauOptions options = plateau_options_of(arguments);
  CHECK(options.mode == acc::PlateauOptions::Mode::max);
  CHECK(options.patience == 3);
  CHECK(options.factor == 0.5);
  arguments.lr_scheduler_kwargs = {{"mode", "min"}, {"threshold_mode", "abs"}};
  CHECK(plateau_options_of(arguments).mode == acc::PlateauOptions::Mode::min);
  CHECK(plateau_options_of(arguments).threshold_mode == acc::PlateauOptions::ThresholdMode::abs);
  arguments.lr_scheduler_kwargs = {{"patients", 3}};
  CHECK(error_of([&] { plateau_options_of(arguments); }) == "lr_scheduler_kwargs: does not take 'patients'");
}

TEST_CASE("trainer_schedule: greedy has its own options beside those of the plateau", "[runtime]") {
  acc::TrainingArguments arguments = of_type(SchedulerType::greedy);
  arguments.lr_scheduler_kwargs = {{"factor", 0.5}, {"warmup", 4}, {"smooth", true}, {"window_size", 9}};
  const acc::GreedyOptions options = acc::detail::greedy_options_of(arguments);
  CHECK(options.factor == 0.5);
  CHECK(options.warmup == 4);
  CHECK(options.smooth);
  CHECK(options.window_size == 9);
  CHECK(options.max_lr == 1);
  arguments.lr_scheduler_kwargs = {{"window_size", 0}};
  CHECK(error_of([&] { acc::detail::greedy_options_of(arguments); }) ==
        "lr_scheduler_kwargs: window_size: must be greater than 0");
  arguments.lr_scheduler_kwargs = {{"verbose", true}};
  CHECK(error_of([&] { acc::detail::greedy_options_of(arguments); }) ==
        "lr_scheduler_kwargs: does not take 'verbose'");
}

}  // namespace trainer_schedule_test
