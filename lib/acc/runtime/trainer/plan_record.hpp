// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "acc/runtime/trainer/trainer_callback.hpp"
#include "acc/runtime/trainer/trainer_state.hpp"
#include "acc/runtime/trainer/training_plan.hpp"

namespace acc::detail {

/// The plan of a training from its start, in checkpoints: the steps of one that was continued may be as many,
/// and of another size. Saved as the state of a callback, since transformers refuses a trainer_state.json
/// with other fields than its own.
class PlanRecord : public TrainerCallback {
 public:
  /// Of the training that begins; none is loaded.
  void set(const TrainingPlan& plan);

  /// Whether the checkpoint is of a training with the same plan: of transformers' by its numbers of steps and
  /// epochs.
  bool is_loaded(const TrainerState& state) const;

  std::string name() const override { return "acc::Trainer"; }
  std::string state() const override { return plan_.dump(); }
  void load_state(std::string_view json) override { loaded_ = nlohmann::json::parse(json); }

 private:
  nlohmann::json plan_ = {};
  std::optional<nlohmann::json> loaded_ = {};
};

}  // namespace acc::detail
