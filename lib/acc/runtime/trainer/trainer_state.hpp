// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc {

/// Numbers by name, as an evaluation gives them.
using Metrics = std::map<std::string, double>;

/// Where a Trainer stands: transformers' TrainerState, of which `trainer_state.json` in a checkpoint is the
/// JSON form.
struct TrainerState {
  /// With a fraction for the part of the current one.
  double epoch = 0;
  /// Steps of the optimizer.
  std::int64_t global_step = 0;
  std::int64_t max_steps = 0;
  std::int64_t num_train_epochs = 0;
  std::int64_t logging_steps = 500;
  std::int64_t eval_steps = 500;
  std::int64_t save_steps = 500;
  std::int64_t train_batch_size = 0;
  /// Each entry has its `step`.
  std::vector<Metrics> log_history = {};
  std::optional<double> best_metric = {};
  std::optional<std::int64_t> best_global_step = {};
  /// Empty: none yet.
  std::filesystem::path best_model_checkpoint = {};
  bool is_local_process_zero = true;
  bool is_world_process_zero = true;
  /// By the callback's name, what its state() gave: JSON.
  std::map<std::string, std::string> stateful_callbacks = {};
};

/// JSON with transformers' names, sorted, as transformers writes it.
std::string to_json(const TrainerState& state);

/// Reads what to_json gave, or transformers wrote. Throws Error{config} naming `file`.
TrainerState read_trainer_state(const std::filesystem::path& file);

}  // namespace acc
