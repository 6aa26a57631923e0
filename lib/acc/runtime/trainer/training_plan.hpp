// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "acc/runtime/data/loader_plan.hpp"
#include "acc/runtime/trainer/training_arguments.hpp"

namespace acc::detail {

/// How long a training is. Steps are those of the optimizer.
struct TrainingPlan {
  std::int64_t num_examples = 0;                ///< In an epoch, over all processes.
  std::int64_t num_train_epochs = 0;            ///< Rounded up.
  std::int64_t num_update_steps_per_epoch = 0;  ///< Steps in a whole epoch.
  std::int64_t batches_in_epoch = 0;            ///< The batches of this process in an epoch.
  std::int64_t max_steps = 0;                   ///< Steps of the whole training.
  std::int64_t total_train_batch_size = 0;      ///< Samples in a step.
  double num_train_samples = 0;                 ///< Samples in the whole training.
};

/// The size of the training data.
struct TrainingDataSize {
  std::size_t batches = 0;   ///< The batches of this process in an epoch.
  std::size_t examples = 0;  ///< The samples of all processes.
};

/// The plan of a training from its start. Without `size` the data ends at max_steps. Throws Error{usage} when
/// neither is known, for data without batches, and for more steps or samples than 2^53.
TrainingPlan plan_training(const TrainingArguments& arguments, int num_processes,
                           const std::optional<TrainingDataSize>& size);

/// Changes the plan of a training from its start to that of one that goes on after `global_step` steps of
/// another size, at this position of its data: it ends where the data or max_steps end.
void plan_rest(TrainingPlan& plan, const TrainingArguments& arguments, std::int64_t global_step,
               const LoaderPosition& from);

/// A number of steps as arguments give it: less than 1 is a fraction of all steps. Infinity is 2^53.
std::int64_t steps_of(double steps, std::int64_t all_steps);

}  // namespace acc::detail
