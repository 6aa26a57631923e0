// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/optim/learning_rate.hpp"

namespace torch::optim {
class Optimizer;
}

namespace acc {

/// Sets the learning rates of any LibTorch optimizer by a schedule, as in
/// `acc::Scheduler scheduler(optimizer.native(), acc::cosine_with_warmup(100, 10'000))`.
class Scheduler {
 public:
  /// Takes the optimizer's current rates as base and sets the first rates. The optimizer must outlive the
  /// scheduler. Throws Error{usage} when the schedule changes the momentum and the optimizer has none.
  Scheduler(torch::optim::Optimizer& optimizer, Schedule schedule);

  /// To be called after the optimizer's step. The base of a parameter group that was added since the last
  /// call is the rate that it has. Throws what the schedule throws.
  void step();

  /// The rates of the parameter groups as the last step set them.
  const std::vector<double>& last_lr() const { return last_lr_; }

  /// The number of steps so far.
  std::int64_t last_epoch() const { return last_epoch_; }

  /// The maximum number of steps, if there is one.
  std::optional<std::int64_t> total_steps() const { return schedule_.total_steps; }

  /// Continues with another schedule from the next step on.
  void set_schedule(Schedule schedule) { schedule_ = std::move(schedule); }

  /// The optimizer whose rates are set. Call set_optimizer after the optimizer was moved.
  torch::optim::Optimizer& optimizer() const { return *optimizer_; }
  /// Continues with another optimizer, as when the first was moved.
  void set_optimizer(torch::optim::Optimizer& optimizer) { optimizer_ = &optimizer; }

  /// The state as a JSON object with Python's names, without the schedule itself.
  std::string state() const;

  /// Restores `state` and the optimizer's rates. Throws Error{config} for any other text or a different
  /// number of parameter groups.
  void load_state(std::string_view state);

 private:
  void apply();

  torch::optim::Optimizer* optimizer_;
  Schedule schedule_;
  std::vector<double> base_lrs_ = {};
  std::vector<double> last_lr_ = {};
  std::int64_t last_epoch_ = 0;
};

/// The arguments of PyTorch's ReduceLROnPlateau.
struct PlateauOptions {
  /// Which metric is better.
  enum class Mode { min, max };
  /// How a threshold is meant.
  enum class ThresholdMode { rel, abs };

  /// Whether a lower (min) or a higher (max) metric is better.
  Mode mode = Mode::min;
  double factor = 0.1;  ///< The rates are multiplied by it.
  /// The number of steps without improvement after which the rates are reduced.
  std::int64_t patience = 10;
  /// The smallest change that counts as an improvement, relative (rel) or absolute (abs).
  double threshold = 1e-4;
  ThresholdMode threshold_mode = ThresholdMode::rel;  ///< See threshold.
  /// The number of steps after a reduction that do not count as steps without improvement.
  std::int64_t cooldown = 0;
  double min_lr = 0;  ///< No rate falls below it.
  /// Reductions smaller than this are skipped.
  double eps = 1e-8;
};

/// Reduces the learning rates when a metric stops improving: PyTorch 2.11's ReduceLROnPlateau. All processes
/// must pass the same metric, as from Accelerator::reduce; otherwise their rates differ.
class ReduceOnPlateau {
 public:
  /// The optimizer must outlive it. Throws Error{usage} for a factor of 1 or more.
  explicit ReduceOnPlateau(torch::optim::Optimizer& optimizer, const PlateauOptions& options = {});

  void step(double metric);  ///< To be called after each evaluation.

  std::vector<double> last_lr() const;  ///< The current rate of each parameter group.

  /// The next functions are those of Scheduler.
  torch::optim::Optimizer& optimizer() const { return *optimizer_; }
  void set_optimizer(torch::optim::Optimizer& optimizer) { optimizer_ = &optimizer; }  ///< Scheduler's.
  std::string state() const;                                                           ///< Scheduler's.
  void load_state(std::string_view state);                                             ///< Scheduler's.

 private:
  void reduce();

  torch::optim::Optimizer* optimizer_;
  PlateauOptions options_;
  double best_;
  std::int64_t num_bad_epochs_ = 0;
  std::int64_t cooldown_counter_ = 0;
  std::int64_t last_epoch_ = 0;
};

/// The arguments of transformers' GreedyLR.
struct GreedyOptions {
  PlateauOptions::Mode mode = PlateauOptions::Mode::min;  ///< Whether a lower or a higher metric is better.
  double factor = 0.95;                                   ///< The rates are multiplied by it, or divided.
  /// The number of steps with, or without, improvement after which the rates are raised, or reduced.
  std::int64_t patience = 10;
  double threshold = 1e-6;  ///< The smallest change that counts as an improvement.
  PlateauOptions::ThresholdMode threshold_mode = PlateauOptions::ThresholdMode::abs;  ///< See threshold.
  std::int64_t cooldown = 0;       ///< The number of steps after a reduction that do not count.
  std::int64_t warmup = 0;         ///< The number of steps after a rise that do not count.
  double min_lr = 1e-3;            ///< No rate falls below it.
  double max_lr = 1;               ///< No rate rises above it.
  double eps = 1e-8;               ///< Smaller changes are skipped.
  bool smooth = false;             ///< Takes the mean of the latest metrics.
  std::size_t window_size = 50;    ///< How many they are.
  std::int64_t reset_start = 500;  ///< After so many reductions at min_lr it begins again.
};

/// Raises the learning rates while a metric improves and reduces them when it stops: transformers 5.23's
/// GreedyLR. All processes must pass the same metric, as from Accelerator::reduce; otherwise their rates
/// differ.
class GreedyLr {
 public:
  /// The optimizer must outlive it. Throws Error{usage} for a factor of 1 or more.
  explicit GreedyLr(torch::optim::Optimizer& optimizer, const GreedyOptions& options = {});

  void step(double metric);  ///< To be called after each evaluation.

  std::vector<double> last_lr() const;  ///< The current rate of each parameter group.

  /// The next functions are those of Scheduler.
  torch::optim::Optimizer& optimizer() const { return *optimizer_; }
  void set_optimizer(torch::optim::Optimizer& optimizer) { optimizer_ = &optimizer; }  ///< Scheduler's.
  std::string state() const;                                                           ///< Scheduler's.
  void load_state(std::string_view state);                                             ///< Scheduler's.

 private:
  // What begins again after a reset.
  struct Progress {
    double best = 0;
    std::int64_t num_bad_epochs = 0;
    std::int64_t num_good_epochs = 0;
    std::int64_t cooldown_counter = 0;
    std::int64_t warmup_counter = 0;
    std::int64_t reset_start = 0;
    std::vector<double> window = {};
    double window_sum = 0;
  };

  Progress initial_progress() const;
  double smoothed(double metric);
  void count(double metric);
  void reduce();
  void increase();

  torch::optim::Optimizer* optimizer_;
  GreedyOptions options_;
  std::vector<double> initial_lrs_;
  Progress progress_;
  std::int64_t last_epoch_ = 0;
};

}  // namespace acc
