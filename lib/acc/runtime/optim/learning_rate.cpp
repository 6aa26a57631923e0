// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/learning_rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "acc/base/error.hpp"

namespace acc {
namespace {

constexpr double kPi = std::numbers::pi;

double to_double(std::int64_t number) {
  return static_cast<double>(number);
}

void require(bool holds, std::string_view what, std::string_view where) {
  if (!holds) throw Error({.what = std::string(what), .where = std::string(where)});
}

double half_cosine(double from, double to, double part) {
  return to + (from - to) * (1 + std::cos(kPi * part)) / 2;
}

// The warmup of transformers' schedules, then `after(step)`.
Schedule after_warmup(std::int64_t warmup, std::function<double(const RatePoint&)> after) {
  return {.rate = [=](const RatePoint& point) {
    if (point.step < warmup)
      return point.base * (to_double(point.step) / to_double(std::max<std::int64_t>(1, warmup)));
    return after(point);
  }};
}

struct Phase {
  double end = 0;
  double from = 0;
  double to = 0;
};

double interpolate(const std::vector<Phase>& phases, double step, Anneal anneal) {
  double start = 0;
  for (const Phase& phase : phases) {
    if (step <= phase.end || &phase == &phases.back()) {
      // A phase without steps is over.
      const double part = phase.end == start ? 1 : (step - start) / (phase.end - start);
      return anneal == Anneal::cos ? half_cosine(phase.from, phase.to, part)
                                   : (phase.to - phase.from) * part + phase.from;
    }
    start = phase.end;
  }
  return 0;
}

// The phases of a one-cycle schedule: from low to high and down to last, with three phases by way of low.
std::vector<Phase> cycle(const OneCycleOptions& options, double low, double high, double last) {
  const double rise = options.pct_start * to_double(options.total_steps);
  const double end = to_double(options.total_steps - 1);
  if (options.three_phase) return {{rise - 1, low, high}, {2 * rise - 2, high, low}, {end, low, last}};
  return {{rise - 1, low, high}, {end, high, last}};
}

}  // namespace

Schedule step_lr(std::int64_t step_size, double gamma) {
  require(step_size > 0, "must be at least 1", "step_lr: step_size");
  return {.rate = [=](const RatePoint& point) {
    if (point.step == 0) return point.base;
    return point.step % step_size == 0 ? point.current * gamma : point.current;
  }};
}

Schedule multi_step_lr(std::vector<std::int64_t> milestones, double gamma) {
  return {.rate = [milestones = std::move(milestones), gamma](const RatePoint& point) {
    const auto times = std::count(milestones.begin(), milestones.end(), point.step);
    const double before = point.step == 0 ? point.base : point.current;
    return before * std::pow(gamma, static_cast<double>(times));
  }};
}

Schedule exponential_lr(double gamma) {
  return {
      .rate = [=](const RatePoint& point) { return point.step == 0 ? point.base : point.current * gamma; }};
}

Schedule linear_lr(double start_factor, double end_factor, std::int64_t total_iters) {
  require(start_factor > 0 && start_factor <= 1, "must be above 0 and at most 1", "linear_lr: start_factor");
  require(end_factor >= 0 && end_factor <= 1, "must be between 0 and 1", "linear_lr: end_factor");
  require(total_iters > 0, "must be at least 1", "linear_lr: total_iters");
  return {.rate = [=](const RatePoint& point) {
    const double part = to_double(std::min(point.step, total_iters)) / to_double(total_iters);
    return point.base * (start_factor + (end_factor - start_factor) * part);
  }};
}

Schedule cosine_annealing_lr(std::int64_t t_max, double eta_min) {
  require(t_max > 0, "must be at least 1", "cosine_annealing_lr: t_max");
  return {.rate = [=](const RatePoint& point) {
    return half_cosine(point.base, eta_min, to_double(point.step) / to_double(t_max));
  }};
}

Schedule cosine_annealing_warm_restarts(std::int64_t t_0, std::int64_t t_mult, double eta_min) {
  require(t_0 > 0, "must be at least 1", "cosine_annealing_warm_restarts: t_0");
  require(t_mult > 0, "must be at least 1", "cosine_annealing_warm_restarts: t_mult");
  return {.rate = [=](const RatePoint& point) {
    std::int64_t length = t_0;
    std::int64_t step = t_mult == 1 ? point.step % t_0 : point.step;
    while (step >= length) {
      step -= length;
      length *= t_mult;
    }
    return half_cosine(point.base, eta_min, to_double(step) / to_double(length));
  }};
}

Schedule lambda_lr(std::function<double(std::int64_t)> factor) {
  require(factor != nullptr, "is empty", "lambda_lr: factor");
  return {.rate = [factor = std::move(factor)](const RatePoint& point) {
    return point.base * factor(point.step);
  }};
}

Schedule sequential_lr(std::vector<Schedule> schedules, std::vector<std::int64_t> milestones) {
  require(!schedules.empty() && milestones.size() + 1 == schedules.size(),
          fmt::format("{} schedules need one milestone fewer than that, not {}", schedules.size(),
                      milestones.size()),
          "sequential_lr");
  require(std::ranges::is_sorted(milestones), "must be sorted", "sequential_lr: milestones");
  const bool any_momentum =
      std::ranges::any_of(schedules, [](const Schedule& one) { return one.momentum != nullptr; });
  const auto part = [=](Rate Schedule::* kind) {
    return [=](RatePoint point) {
      const auto next = std::ranges::upper_bound(milestones, point.step);
      const Rate& rate = schedules[static_cast<std::size_t>(next - milestones.begin())].*kind;
      if (next != milestones.begin()) point.step -= *std::prev(next);
      return rate ? rate(point) : point.current;
    };
  };
  return {.rate = part(&Schedule::rate), .momentum = any_momentum ? Rate(part(&Schedule::momentum)) : Rate()};
}

Schedule one_cycle_lr(const OneCycleOptions& options) {
  require(options.total_steps > 0, "must be at least 1", "one_cycle_lr: total_steps");
  require(options.pct_start >= 0 && options.pct_start <= 1, "must be between 0 and 1",
          "one_cycle_lr: pct_start");
  require(!options.max_lr.empty(), "is missing", "one_cycle_lr: max_lr");
  require(options.div_factor > 0, "must be greater than 0", "one_cycle_lr: div_factor");
  require(options.final_div_factor > 0, "must be greater than 0", "one_cycle_lr: final_div_factor");
  Schedule schedule;
  schedule.total_steps = options.total_steps;
  schedule.rate = [options](const RatePoint& point) {
    require(point.step <= options.total_steps,
            fmt::format("step {} is past total_steps, which is {}", point.step, options.total_steps),
            "one_cycle_lr");
    require(options.max_lr.size() == 1 || point.group < options.max_lr.size(),
            "needs one value, or one for each parameter group", "one_cycle_lr: max_lr");
    const double high = options.max_lr[options.max_lr.size() == 1 ? 0 : point.group];
    const double low = high / options.div_factor;
    return interpolate(cycle(options, low, high, low / options.final_div_factor), to_double(point.step),
                       options.anneal_strategy);
  };
  if (options.cycle_momentum) {
    schedule.momentum = [options](const RatePoint& point) {
      const double high = options.max_momentum;
      return interpolate(cycle(options, high, options.base_momentum, high), to_double(point.step),
                         options.anneal_strategy);
    };
  }
  return schedule;
}

Schedule linear_with_warmup(std::int64_t num_warmup_steps, std::int64_t num_training_steps) {
  const double length = to_double(std::max<std::int64_t>(1, num_training_steps - num_warmup_steps));
  return after_warmup(num_warmup_steps, [=](const RatePoint& point) {
    return point.base * std::max(0.0, to_double(num_training_steps - point.step) / length);
  });
}

Schedule cosine_with_warmup(std::int64_t num_warmup_steps, std::int64_t num_training_steps,
                            double num_cycles) {
  const double length = to_double(std::max<std::int64_t>(1, num_training_steps - num_warmup_steps));
  return after_warmup(num_warmup_steps, [=](const RatePoint& point) {
    const double part = to_double(point.step - num_warmup_steps) / length;
    return point.base * std::max(0.0, 0.5 * (1 + std::cos(kPi * num_cycles * 2 * part)));
  });
}

Schedule polynomial_with_warmup(std::int64_t num_warmup_steps, std::int64_t num_training_steps, double lr_end,
                                double power) {
  require(power >= 0, "must not be negative", "polynomial_with_warmup: power");
  const double length = to_double(num_training_steps - num_warmup_steps);
  Schedule schedule = after_warmup(num_warmup_steps, [=](const RatePoint& point) {
    if (point.step > num_training_steps || length <= 0) return lr_end;
    const double left = 1 - to_double(point.step - num_warmup_steps) / length;
    return (point.base - lr_end) * std::pow(left, power) + lr_end;
  });
  // From the first step on, also while it warms up.
  schedule.rate = [=, rate = std::move(schedule.rate)](const RatePoint& point) {
    require(point.base > lr_end, fmt::format("must be below the optimizer's rate, which is {}", point.base),
            "polynomial_with_warmup: lr_end");
    return rate(point);
  };
  return schedule;
}

}  // namespace acc
