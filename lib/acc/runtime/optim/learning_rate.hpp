// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace acc {

/// A point of a schedule for one parameter group.
struct RatePoint {
  /// The number of steps of the schedule so far; 0 before the first.
  std::int64_t step = 0;
  /// The group's rate (or momentum) before the schedule began, and after the previous step.
  double base = 0;
  double current = 0;     ///< The rate after the previous step.
  std::size_t group = 0;  ///< The index of the parameter group.
};

/// Computes the rate (or momentum) at a point.
using Rate = std::function<double(const RatePoint&)>;

/// The learning rate as a function of the step, which a Scheduler applies. Pure.
struct Schedule {
  Rate rate = {};  ///< The learning rate.
  /// The momentum, or Adam's first beta; if empty, it does not change.
  Rate momentum = {};
  /// The length of the schedule, if it is limited: a step beyond it is an error.
  std::optional<std::int64_t> total_steps = {};
};

/// The following are PyTorch 2.11's schedulers of the same names, with the same defaults and values. They
/// throw Error{usage} for invalid arguments.

/// Multiplies the rate by `gamma` every `step_size` steps.
Schedule step_lr(std::int64_t step_size, double gamma = 0.1);
/// Multiplies the rate by `gamma` at each milestone, several times at repeated ones.
Schedule multi_step_lr(std::vector<std::int64_t> milestones, double gamma = 0.1);
/// Multiplies the rate by `gamma` at each step.
Schedule exponential_lr(double gamma);
/// Changes the rate linearly from base * start_factor to base * end_factor over `total_iters` steps.
Schedule linear_lr(double start_factor = 1.0 / 3, double end_factor = 1.0, std::int64_t total_iters = 5);
/// Half a cosine from base down to `eta_min` in `t_max` steps, and back up afterwards.
Schedule cosine_annealing_lr(std::int64_t t_max, double eta_min = 0);
/// Repeats half a cosine from base down to `eta_min`; each time is `t_mult` times as long as the one before.
Schedule cosine_annealing_warm_restarts(std::int64_t t_0, std::int64_t t_mult = 1, double eta_min = 0);
/// The rate is base * factor(step).
Schedule lambda_lr(std::function<double(std::int64_t)> factor);
/// Switches to the next schedule at each milestone. Each schedule counts steps from its own start.
Schedule sequential_lr(std::vector<Schedule> schedules, std::vector<std::int64_t> milestones);

/// The shape of a fall: half a cosine, or a line.
enum class Anneal { cos, linear };

/// The arguments of PyTorch's OneCycleLR.
struct OneCycleOptions {
  /// One value for all parameter groups, or one for each.
  std::vector<double> max_lr = {};
  std::int64_t total_steps = 0;  ///< The length of the cycle; must be given.
  /// The fraction of the cycle in which the rate rises. A rise of one step begins at its end.
  double pct_start = 0.3;
  Anneal anneal_strategy = Anneal::cos;  ///< The shape of rise and fall.
  /// Cycles the momentum inversely to the rate; the optimizer must have a momentum.
  bool cycle_momentum = true;
  double base_momentum = 0.85;  ///< The momentum at the highest rate.
  double max_momentum = 0.95;   ///< The momentum at the start and the end.
  /// The rate starts at max_lr / div_factor and ends at that / final_div_factor.
  double div_factor = 25;
  double final_div_factor = 1e4;  ///< See div_factor.
  bool three_phase = false;       ///< Falls as long as it rose, and then to the end.
};

/// A step beyond `total_steps` throws Error{usage}.
Schedule one_cycle_lr(const OneCycleOptions& options);

/// The following are transformers' get_*_schedule_with_warmup: the rate rises linearly from 0 to base, then
/// falls until `num_training_steps`.
Schedule linear_with_warmup(std::int64_t num_warmup_steps, std::int64_t num_training_steps);
/// Falls as a cosine.
Schedule cosine_with_warmup(std::int64_t num_warmup_steps, std::int64_t num_training_steps,
                            double num_cycles = 0.5);
/// Falls by a power, of at least 0, of the remaining steps.
Schedule polynomial_with_warmup(std::int64_t num_warmup_steps, std::int64_t num_training_steps,
                                double lr_end = 1e-7, double power = 1.0);

}  // namespace acc
