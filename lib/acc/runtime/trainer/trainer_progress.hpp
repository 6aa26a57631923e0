// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "acc/runtime/trainer/trainer_callback.hpp"

namespace acc::detail {

struct TrainingPlan;

/// Shows the progress of a training, on the main process: a progress bar on standard error, if that is a
/// terminal, and on standard output a table with a row for each evaluation, or for each log if there are no
/// evaluations.
class ProgressCallback : public TrainerCallback {
 public:
  /// `is_terminal`: whether standard error is a terminal.
  explicit ProgressCallback(bool is_terminal) : has_bar_(is_terminal) {}

  void on_train_begin(const Arguments& arguments, State& state, Control& control) override;
  void on_step_end(const Arguments& arguments, State& state, Control& control) override;
  void on_prediction_step(const Arguments& arguments, State& state, Control& control,
                          std::optional<std::size_t> batches) override;
  void on_log(const Arguments& arguments, State& state, Control& control, const Metrics& logs) override;
  void on_evaluate(const Arguments& arguments, State& state, Control& control,
                   const Metrics& metrics) override;
  void on_predict(const Arguments& arguments, State& state, Control& control,
                  const Metrics& metrics) override;
  void on_train_end(const Arguments& arguments, State& state, Control& control) override;

 private:
  using Clock = std::chrono::steady_clock;

  void draw_bar(const State& state);
  void clear_bar();
  void write_row(const Arguments& arguments, const State& state, const Metrics& metrics);

  bool has_bar_;
  bool is_drawn_ = false;
  bool is_training_ = false;
  Clock::time_point started_ = {};
  Clock::time_point drawn_ = {};
  std::int64_t first_step_ = 0;
  std::size_t predicted_ = 0;
  std::optional<std::size_t> predictions_ = {};
  std::optional<double> training_loss_ = {};
  // The metrics of the evaluation sets of one row.
  Metrics evaluated_ = {};
  // The columns of the table; empty before the first row.
  std::vector<std::string> columns_ = {};
};

/// The lines that transformers shows before a training; `num_trainable` counts the parameters that it
/// changes.
std::string banner_of(const TrainingPlan& plan, const TrainingArguments& arguments,
                      std::int64_t num_trainable);

/// `12345` as `12,345`.
std::string with_thousands(std::int64_t number);

/// `1:02:03`, or `02:03` below an hour.
std::string clock_time(double seconds);

}  // namespace acc::detail
