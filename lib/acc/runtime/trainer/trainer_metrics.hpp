// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "acc/runtime/tracking/tracker.hpp"
#include "acc/runtime/trainer/trainer_state.hpp"
#include "acc/runtime/trainer/training_arguments.hpp"

namespace acc::detail {

/// The seconds that have passed since `start`.
inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Adds transformers' speed_metrics: `<prefix>_runtime`, and unless no time has passed,
/// `<prefix>_samples_per_second` and `<prefix>_steps_per_second`.
void add_speed(Metrics& metrics, const std::string& prefix, double seconds, double samples, double steps);

/// Adds what transformers logs of a training that counts tokens: `train_runtime`, and unless no time has
/// passed, `train_tokens_per_second`.
void add_token_speed(Metrics& metrics, double seconds, double tokens);

/// Renames metrics for trackers as transformers does: `eval_loss` to `eval/loss`, `loss` to `train/loss`.
TrackedValues tracked_values(const Metrics& metrics);

/// The arguments that are truths, numbers and texts.
TrackedConfig tracked_config(const TrainingArguments& arguments);

}  // namespace acc::detail
