// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "acc/runtime/trainer/trainer_callback.hpp"
#include "acc/runtime/trainer/trainer_state.hpp"
#include "acc/runtime/trainer/training_plan.hpp"

namespace acc::detail {

/// What a training says of itself in its checkpoints beside what transformers' do: its plan, since the steps
/// of one that was continued may be as many, and of another size; after which steps it has saved, since
/// there may be checkpoints of others; and whether a training that ends within an epoch has had its end.
/// Saved as the state of a callback, since transformers refuses a trainer_state.json with other fields than
/// its own.
class TrainingRecord : public TrainerCallback {
 public:
  /// Of the training that begins; none is loaded.
  void set(const TrainingPlan& plan);
  void set_saved_steps(std::set<std::int64_t> steps) { saved_steps_ = std::move(steps); }
  void set_epoch_ended(bool ended) { epoch_ended_ = ended; }

  /// Whether the checkpoint is of a training with the same plan: of transformers' by its numbers of steps and
  /// epochs.
  bool is_loaded(const TrainerState& state) const;

  /// Those of the checkpoint that was loaded, if it has any.
  const std::set<std::int64_t>& saved_steps() const { return saved_steps_; }

  /// Whether the checkpoint that was loaded was saved at the end of an epoch, after its evaluation.
  bool epoch_ended() const { return epoch_ended_; }

  std::string name() const override { return "acc::Trainer"; }
  std::string state() const override;
  void load_state(std::string_view json) override;

 private:
  nlohmann::json plan_ = {};
  std::optional<nlohmann::json> loaded_ = {};
  std::set<std::int64_t> saved_steps_ = {};
  bool epoch_ended_ = false;
};

}  // namespace acc::detail
