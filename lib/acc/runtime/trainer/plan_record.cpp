// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/plan_record.hpp"

namespace acc::detail {

void PlanRecord::set(const TrainingPlan& plan) {
  plan_ = {{"total_train_batch_size", plan.total_train_batch_size},
           {"num_update_steps_per_epoch", plan.num_update_steps_per_epoch},
           {"max_steps", plan.max_steps},
           {"num_train_epochs", plan.num_train_epochs}};
  loaded_.reset();
}

bool PlanRecord::is_loaded(const TrainerState& state) const {
  if (loaded_) return *loaded_ == plan_;
  return state.max_steps == plan_.at("max_steps") && state.num_train_epochs == plan_.at("num_train_epochs");
}

}  // namespace acc::detail
