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

/// Numbers by name, such as the results of an evaluation.
using Metrics = std::map<std::string, double>;

/// The progress of a training: transformers' TrainerState, which is `trainer_state.json` in a checkpoint.
struct TrainerState {
  /// Has a fraction for the part of the current epoch.
  double epoch = 0;
  /// The number of optimizer steps so far.
  std::int64_t global_step = 0;
  std::int64_t max_steps = 0;         ///< The steps of the whole training.
  std::int64_t num_train_epochs = 0;  ///< Its epochs, rounded up.
  std::int64_t logging_steps = 500;   ///< Steps between logs.
  std::int64_t eval_steps = 500;      ///< Steps between evaluations.
  std::int64_t save_steps = 500;      ///< Steps between checkpoints.
  std::int64_t train_batch_size = 0;  ///< Samples in a batch of one process.
  /// The tokens of all processes so far, if TrainingArguments::include_num_input_tokens_seen is set.
  std::int64_t num_input_tokens_seen = 0;
  /// Each entry has a `step`.
  std::vector<Metrics> log_history = {};
  std::optional<double> best_metric = {};             ///< Of the best model so far.
  std::optional<std::int64_t> best_global_step = {};  ///< The step at which it was evaluated.
  /// Empty if there is none yet.
  std::filesystem::path best_model_checkpoint = {};
  bool is_local_process_zero = true;  ///< Whether this is the first process of its machine.
  bool is_world_process_zero = true;  ///< Whether this is rank 0.
  /// For each callback's name, the JSON text of its state(), or the list of those of several callbacks.
  std::map<std::string, std::string> stateful_callbacks = {};
};

/// Writes JSON with transformers' names, sorted as transformers sorts them.
std::string to_json(const TrainerState& state);

/// Reads a file with the result of to_json, or that transformers wrote, also with Python's NaN and Infinity.
/// Of those, callbacks get the words as strings. Throws Error{config} naming `file`.
TrainerState read_trainer_state(const std::filesystem::path& file);

}  // namespace acc
