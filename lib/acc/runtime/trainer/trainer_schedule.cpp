// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "acc/runtime/trainer/named_numbers.hpp"
#include "acc/runtime/trainer/training_plan.hpp"

namespace acc::detail {
namespace {

constexpr const char* kArgument = "lr_scheduler_kwargs";

// The part of the warm-up that is over at a step within it.
double warmup_part(std::int64_t step, std::int64_t warmup) {
  return double(step) / double(std::max<std::int64_t>(1, warmup));
}

Schedule constant_after_warmup(std::int64_t warmup) {
  return lambda_lr([=](std::int64_t step) { return step < warmup ? warmup_part(step, warmup) : 1.0; });
}

// transformers' get_cosine_with_hard_restarts_schedule_with_warmup and get_inverse_sqrt_schedule.
Schedule cosine_with_restarts(std::int64_t warmup, std::int64_t steps, double cycles) {
  return lambda_lr([=](std::int64_t step) {
    if (step < warmup) return warmup_part(step, warmup);
    const double progress = double(step - warmup) / double(std::max<std::int64_t>(1, steps - warmup));
    if (progress >= 1) return 0.0;
    return std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * std::fmod(cycles * progress, 1.0))));
  });
}
Schedule inverse_sqrt(std::int64_t warmup, double timescale) {
  return lambda_lr([=](std::int64_t step) {
    if (step < warmup) return warmup_part(step, warmup);
    return 1 / std::sqrt((double(step) + timescale - double(warmup)) / timescale);
  });
}

}  // namespace

Schedule schedule_of(const TrainingArguments& arguments, std::int64_t num_training_steps) {
  const std::int64_t warmup = steps_of(arguments.warmup_steps, num_training_steps);
  NamedNumbers numbers(arguments.lr_scheduler_kwargs, kArgument);
  Schedule schedule = [&] {
    switch (arguments.lr_scheduler_type) {
      case SchedulerType::linear:
        return linear_with_warmup(warmup, num_training_steps);
      case SchedulerType::cosine:
        return cosine_with_warmup(warmup, num_training_steps, numbers.take("num_cycles", 0.5));
      case SchedulerType::cosine_with_restarts:
        return cosine_with_restarts(warmup, num_training_steps, numbers.take("num_cycles", 1));
      case SchedulerType::polynomial: {
        const double end = numbers.take("lr_end", 1e-7);
        return polynomial_with_warmup(warmup, num_training_steps, end, numbers.take("power", 1));
      }
      case SchedulerType::constant_with_warmup:
        return constant_after_warmup(warmup);
      case SchedulerType::inverse_sqrt:
        return inverse_sqrt(warmup, numbers.take("timescale", warmup > 0 ? double(warmup) : 10'000));
      case SchedulerType::constant:
      case SchedulerType::reduce_lr_on_plateau:
        break;
    }
    return constant_after_warmup(0);
  }();
  numbers.require_empty();
  return schedule;
}

PlateauOptions plateau_options_of(const TrainingArguments& arguments) {
  NamedNumbers numbers(arguments.lr_scheduler_kwargs, kArgument);
  PlateauOptions options;
  options.mode =
      arguments.greater_is_better.value_or(false) ? PlateauOptions::Mode::max : PlateauOptions::Mode::min;
  options.factor = numbers.take("factor", options.factor);
  options.patience = static_cast<std::int64_t>(numbers.take("patience", double(options.patience)));
  options.threshold = numbers.take("threshold", options.threshold);
  options.cooldown = static_cast<std::int64_t>(numbers.take("cooldown", double(options.cooldown)));
  options.min_lr = numbers.take("min_lr", options.min_lr);
  numbers.require_empty();
  return options;
}

}  // namespace acc::detail
