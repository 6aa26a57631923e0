// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/training_record.hpp"

namespace acc::detail {
namespace {

constexpr const char* kSavedSteps = "saved_steps";
constexpr const char* kEpochEnded = "epoch_ended";

}  // namespace

void TrainingRecord::set(const TrainingPlan& plan) {
  plan_ = {{"total_train_batch_size", plan.total_train_batch_size},
           {"num_update_steps_per_epoch", plan.num_update_steps_per_epoch},
           {"max_steps", plan.max_steps},
           {"num_train_epochs", plan.num_train_epochs}};
  loaded_.reset();
  saved_steps_.clear();
  epoch_ended_ = false;
}

std::string TrainingRecord::state() const {
  nlohmann::json fields = plan_;
  fields[kSavedSteps] = saved_steps_;
  fields[kEpochEnded] = epoch_ended_;
  return fields.dump();
}

void TrainingRecord::load_state(std::string_view json) {
  loaded_ = nlohmann::json::parse(json);
  saved_steps_ = loaded_->value(kSavedSteps, std::set<std::int64_t>());
  loaded_->erase(kSavedSteps);
  epoch_ended_ = loaded_->value(kEpochEnded, false);
  loaded_->erase(kEpochEnded);
}

bool TrainingRecord::is_loaded(const TrainerState& state) const {
  if (loaded_) return *loaded_ == plan_;
  return state.max_steps == plan_.at("max_steps") && state.num_train_epochs == plan_.at("num_train_epochs");
}

}  // namespace acc::detail
