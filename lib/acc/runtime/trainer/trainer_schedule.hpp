// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "acc/runtime/optim/learning_rate.hpp"
#include "acc/runtime/optim/schedulers.hpp"
#include "acc/runtime/trainer/training_arguments.hpp"

namespace acc::detail {

/// The schedule that TrainingArguments::lr_scheduler_type names, for a training of this many steps; constant
/// for those that follow a metric. Throws Error{usage} for lr_scheduler_kwargs that it does not take.
Schedule schedule_of(const TrainingArguments& arguments, std::int64_t num_training_steps);

/// The options of reduce_lr_on_plateau. Throws Error{usage} for lr_scheduler_kwargs that it does not take.
PlateauOptions plateau_options_of(const TrainingArguments& arguments);

/// The options of greedy. Throws Error{usage} for lr_scheduler_kwargs that it does not take.
GreedyOptions greedy_options_of(const TrainingArguments& arguments);

}  // namespace acc::detail
