// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/training_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "acc/base/error.hpp"

namespace acc::detail {
namespace {

std::int64_t ceil_div(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

// Up to here a double has every whole number, and sums of two do not overflow.
constexpr double kMaxCount = 9007199254740992;  // 2^53

// Throws unless this many steps or samples can be counted.
std::int64_t countable(double count, const char* what, const char* argument) {
  if (count <= kMaxCount) return static_cast<std::int64_t>(count);  // not NaN
  throw Error({.what = fmt::format("gives {:.4g} {}, of which at most 2^53 can be counted", count, what),
               .where = argument,
               .hint = "make it smaller; a callback can end a training earlier"});
}

}  // namespace

TrainingPlan plan_training(const TrainingArguments& arguments, int num_processes,
                           const std::optional<TrainingDataSize>& size) {
  const TrainingArguments& a = arguments;
  TrainingPlan plan;
  plan.max_steps = a.max_steps;
  plan.total_train_batch_size = countable(
      double(a.per_device_train_batch_size) * double(a.gradient_accumulation_steps) * double(num_processes),
      "samples in a step", "per_device_train_batch_size, gradient_accumulation_steps");
  countable(double(a.max_steps), "steps", "max_steps");
  if (!size) {
    if (a.max_steps < 0)
      throw Error(
          {.what = "is required, since the size of the training data is not known", .where = "max_steps"});
    plan.num_train_epochs = std::numeric_limits<std::int64_t>::max();
    plan.num_update_steps_per_epoch = a.max_steps;
    plan.num_train_samples = double(plan.max_steps) * double(plan.total_train_batch_size);
    plan.num_examples = countable(plan.num_train_samples, "samples", "max_steps");
    plan.batches_in_epoch = a.max_steps * a.gradient_accumulation_steps;
    return plan;
  }
  if (size->batches == 0)
    throw Error({.what = "the training data has no batches",
                 .where = "Trainer",
                 .hint = a.dataloader_drop_last
                             ? "it is smaller than a batch, and dataloader_drop_last is set"
                             : "it is empty"});
  plan.batches_in_epoch = static_cast<std::int64_t>(size->batches);
  plan.num_update_steps_per_epoch = ceil_div(plan.batches_in_epoch, a.gradient_accumulation_steps);
  plan.num_examples = static_cast<std::int64_t>(size->examples);
  if (a.max_steps > 0) {
    plan.num_train_epochs = ceil_div(plan.max_steps, plan.num_update_steps_per_epoch);
    plan.num_train_samples = double(plan.max_steps) * double(plan.total_train_batch_size);
  } else {
    plan.max_steps = countable(std::ceil(a.num_train_epochs * double(plan.num_update_steps_per_epoch)),
                               "steps", "num_train_epochs");
    plan.num_train_epochs = static_cast<std::int64_t>(std::ceil(a.num_train_epochs));
    plan.num_train_samples = double(plan.num_examples) * a.num_train_epochs;
  }
  return plan;
}

void plan_rest(TrainingPlan& plan, const TrainingArguments& arguments, std::int64_t global_step,
               const LoaderPosition& from) {
  const std::int64_t in_step = arguments.gradient_accumulation_steps;
  const std::int64_t in_epoch = plan.num_update_steps_per_epoch;
  const std::int64_t epoch = static_cast<std::int64_t>(from.epoch) + (from.finished ? 1 : 0);
  const std::int64_t batches = from.finished ? 0 : static_cast<std::int64_t>(from.batches);
  const auto steps_until = [&](std::int64_t batch) {
    return ceil_div(std::max<std::int64_t>(0, batch - batches), in_step);
  };
  const std::int64_t rest_of_pass = steps_until(plan.batches_in_epoch);
  if (arguments.max_steps > 0) {
    const std::int64_t later = std::max<std::int64_t>(0, plan.max_steps - global_step - rest_of_pass);
    plan.num_train_epochs = epoch + 1 + ceil_div(later, in_epoch);
    return;
  }
  const std::int64_t last_epoch = plan.max_steps / in_epoch;
  const std::int64_t in_last = plan.max_steps % in_epoch;
  std::int64_t rest = 0;
  if (epoch < last_epoch) rest = rest_of_pass + (last_epoch - epoch - 1) * in_epoch + in_last;
  if (epoch == last_epoch) rest = steps_until(in_last * in_step);
  plan.max_steps = global_step + rest;
}

std::int64_t steps_of(double steps, std::int64_t all_steps) {
  return static_cast<std::int64_t>(steps < 1 ? std::ceil(steps * double(all_steps))
                                             : std::min(steps, kMaxCount));
}

}  // namespace acc::detail
