// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "acc/base/error.hpp"
#include "acc/runtime/trainer/named_options.hpp"
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

// A cosine from 1 down to `min_factor`, of which `progress` is over; `cycles` are whole waves.
double cosine_between(double progress, double cycles, double min_factor) {
  const double factor = 0.5 * (1 + std::cos(std::numbers::pi * cycles * 2 * progress));
  return std::max(0.0, factor * (1 - min_factor) + min_factor);
}

// The minimum rate of a schedule as a part of the highest.
double take_min_factor(NamedOptions& options, double learning_rate) {
  const std::optional<double> rate = options.take("min_lr");
  const std::optional<double> factor = options.take("min_lr_rate");
  if (rate.has_value() == factor.has_value())
    throw Error({.what = "needs either min_lr or min_lr_rate", .where = kArgument});
  if (rate && learning_rate == 0)
    throw Error({.what = "min_lr is a part of learning_rate, which is 0",
                 .where = kArgument,
                 .hint = "give min_lr_rate, or a learning_rate"});
  return factor ? *factor : *rate / learning_rate;
}

// transformers' get_cosine_with_min_lr_schedule_with_warmup, and with ..._warmup_lr_rate.
Schedule cosine_with_min_lr(double warmup, double steps, NamedOptions& options, double learning_rate) {
  const double cycles = options.take("num_cycles", 0.5);
  const double min_factor = take_min_factor(options, learning_rate);
  return lambda_lr([=](std::int64_t step) {
    if (double(step) < warmup) return double(step) / std::max(1.0, warmup);
    return cosine_between((double(step) - warmup) / std::max(1.0, steps - warmup), cycles, min_factor);
  });
}
Schedule cosine_warmup_with_min_lr(double warmup, double steps, NamedOptions& options, double learning_rate) {
  const double cycles = options.take("num_cycles", 0.5);
  const double min_factor = take_min_factor(options, learning_rate);
  const std::optional<double> first = options.take("warmup_lr_rate");
  return lambda_lr([=](std::int64_t index) {
    const auto step = double(index);
    if (step < warmup && !first) return (step + 1) / std::max(1.0, warmup);
    if (step < warmup) return *first + (1 - *first) * step / std::max(1.0, warmup - 1);
    return cosine_between((step - warmup + 1) / std::max(1.0, steps - warmup), cycles, min_factor);
  });
}

// transformers' get_wsd_schedule.
enum class Shape { linear, cosine, one_minus_sqrt };

Shape take_shape(NamedOptions& options, const char* name, Shape default_value) {
  return options.take_choice<Shape>(
      name, {{"linear", Shape::linear}, {"cosine", Shape::cosine}, {"1-sqrt", Shape::one_minus_sqrt}},
      default_value);
}

// From 0 to 1.
double rise(Shape shape, double progress) {
  switch (shape) {
    case Shape::linear:
      return progress;
    case Shape::cosine:
      return 0.5 * (1 - std::cos(std::numbers::pi * progress));
    case Shape::one_minus_sqrt:
      break;
  }
  return 1 - std::sqrt(1 - progress);
}

// From 1 to 0, or with other `cycles` than half a wave to anywhere.
double fall(Shape shape, double progress, double cycles) {
  switch (shape) {
    case Shape::linear:
      return 1 - progress;
    case Shape::cosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * cycles * 2 * progress));
    case Shape::one_minus_sqrt:
      break;
  }
  return 1 - std::sqrt(progress);
}

Schedule warmup_stable_decay(double warmup, double steps, NamedOptions& options) {
  const double decay = options.take_required("num_decay_steps");
  const double stable = options.take("num_stable_steps", steps - warmup - decay);
  const double min_factor = options.take("min_lr_ratio", 0);
  const double cycles = options.take("num_cycles", 0.5);
  const Shape up = take_shape(options, "warmup_type", Shape::linear);
  const Shape down = take_shape(options, "decay_type", Shape::cosine);
  const auto above_min = [=](double factor) { return std::max(0.0, factor * (1 - min_factor) + min_factor); };
  return lambda_lr([=](std::int64_t index) {
    const auto step = double(index);
    if (step < warmup) return above_min(rise(up, step / std::max(1.0, warmup)));
    if (step < warmup + stable) return 1.0;
    const double decayed = step - warmup - stable;
    return decayed < decay ? above_min(fall(down, decayed / std::max(1.0, decay), cycles)) : min_factor;
  });
}

// transformers' default is min for any metric.
PlateauOptions::Mode take_mode(NamedOptions& options, const TrainingArguments& arguments) {
  using Mode = PlateauOptions::Mode;
  const Mode of_metric = arguments.greater_is_better.value_or(false) ? Mode::max : Mode::min;
  return options.take_choice<Mode>("mode", {{"min", Mode::min}, {"max", Mode::max}}, of_metric);
}

PlateauOptions::ThresholdMode take_threshold_mode(NamedOptions& options,
                                                  PlateauOptions::ThresholdMode default_value) {
  using Mode = PlateauOptions::ThresholdMode;
  return options.take_choice<Mode>("threshold_mode", {{"rel", Mode::rel}, {"abs", Mode::abs}}, default_value);
}

std::int64_t take_steps(NamedOptions& options, const char* name, std::int64_t default_value) {
  return static_cast<std::int64_t>(options.take(name, double(default_value)));
}

// What both schedulers that follow a metric have.
template <class Options>
void take_metric_options(NamedOptions& named, const TrainingArguments& arguments, Options& options) {
  options.mode = take_mode(named, arguments);
  options.factor = named.take("factor", options.factor, Range::below_one);
  options.patience = take_steps(named, "patience", options.patience);
  options.threshold = named.take("threshold", options.threshold);
  options.threshold_mode = take_threshold_mode(named, options.threshold_mode);
  options.cooldown = take_steps(named, "cooldown", options.cooldown);
  options.min_lr = named.take("min_lr", options.min_lr);
  options.eps = named.take("eps", options.eps);
}

}  // namespace

Schedule schedule_of(const TrainingArguments& arguments, std::int64_t num_training_steps) {
  const std::int64_t warmup = steps_of(arguments.warmup_steps, num_training_steps);
  NamedOptions options(arguments.lr_scheduler_kwargs, kArgument);
  Schedule schedule = [&] {
    switch (arguments.lr_scheduler_type) {
      case SchedulerType::linear:
        return linear_with_warmup(warmup, num_training_steps);
      case SchedulerType::cosine:
        return cosine_with_warmup(warmup, num_training_steps, options.take("num_cycles", 0.5));
      case SchedulerType::cosine_with_restarts:
        return cosine_with_restarts(warmup, num_training_steps, options.take("num_cycles", 1));
      case SchedulerType::polynomial: {
        const double end = options.take("lr_end", 1e-7);
        return polynomial_with_warmup(warmup, num_training_steps, end, options.take("power", 1));
      }
      case SchedulerType::constant_with_warmup:
        return constant_after_warmup(warmup);
      case SchedulerType::inverse_sqrt:
        return inverse_sqrt(warmup,
                            options.take("timescale", warmup > 0 ? double(warmup) : 10'000, Range::positive));
      case SchedulerType::cosine_with_min_lr:
        return cosine_with_min_lr(double(warmup), double(num_training_steps), options,
                                  arguments.learning_rate);
      case SchedulerType::cosine_warmup_with_min_lr:
        return cosine_warmup_with_min_lr(double(warmup), double(num_training_steps), options,
                                         arguments.learning_rate);
      case SchedulerType::warmup_stable_decay:
        return warmup_stable_decay(double(warmup), double(num_training_steps), options);
      case SchedulerType::constant:
      case SchedulerType::reduce_lr_on_plateau:
      case SchedulerType::greedy:
        break;
    }
    return constant_after_warmup(0);
  }();
  options.require_empty();
  return schedule;
}

PlateauOptions plateau_options_of(const TrainingArguments& arguments) {
  NamedOptions named(arguments.lr_scheduler_kwargs, kArgument);
  PlateauOptions options;
  take_metric_options(named, arguments, options);
  named.require_empty();
  return options;
}

GreedyOptions greedy_options_of(const TrainingArguments& arguments) {
  NamedOptions named(arguments.lr_scheduler_kwargs, kArgument);
  GreedyOptions options;
  take_metric_options(named, arguments, options);
  options.warmup = take_steps(named, "warmup", options.warmup);
  options.max_lr = named.take("max_lr", options.max_lr);
  options.smooth = named.take("smooth", 0) != 0;
  options.window_size =
      static_cast<std::size_t>(named.take("window_size", double(options.window_size), Range::positive));
  options.reset_start = take_steps(named, "reset_start", options.reset_start);
  named.require_empty();
  return options;
}

}  // namespace acc::detail
