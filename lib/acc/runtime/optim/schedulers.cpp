// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/schedulers.hpp"

#include <fmt/format.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "acc/base/error.hpp"

namespace acc {
namespace {

using nlohmann::json;
using torch::optim::OptimizerParamGroup;

std::vector<double> rates_of(torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (const OptimizerParamGroup& group : optimizer.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

void set_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates) {
  auto& groups = optimizer.param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(rates[i]);
}

// Applies `change` to the momentum or first beta. Returns false if the options have neither.
bool change_momentum(torch::optim::OptimizerOptions& options, const std::function<double(double)>& change) {
  const auto of_betas = [&](auto* adam) {
    adam->betas({change(std::get<0>(adam->betas())), std::get<1>(adam->betas())});
    return true;
  };
  const auto of_momentum = [&](auto* sgd) {
    sgd->momentum(change(sgd->momentum()));
    return true;
  };
  if (auto* adam = dynamic_cast<torch::optim::AdamOptions*>(&options)) return of_betas(adam);
  if (auto* adamw = dynamic_cast<torch::optim::AdamWOptions*>(&options)) return of_betas(adamw);
  if (auto* sgd = dynamic_cast<torch::optim::SGDOptions*>(&options)) return of_momentum(sgd);
  if (auto* rmsprop = dynamic_cast<torch::optim::RMSpropOptions*>(&options)) return of_momentum(rmsprop);
  return false;
}

// Calls `read` with the parsed state. JSON exceptions become an Error.
template <class Read>
void read_state(std::string_view text, std::size_t groups, Read read) {
  try {
    const json state = json::parse(text);
    const auto rates = state.at("_last_lr").get<std::vector<double>>();
    if (rates.size() != groups) {
      throw Error(
          {.kind = ErrorKind::config,
           .what = fmt::format("has {} parameter groups, but the optimizer has {}", rates.size(), groups),
           .where = "scheduler state"});
    }
    read(state, rates);
  } catch (const json::out_of_range&) {
    throw Error({.kind = ErrorKind::config,
                 .what = "is that of another kind of schedule",
                 .where = "scheduler state",
                 .hint = "resume with the schedule of the checkpoint"});
  } catch (const json::exception&) {
    throw Error(
        {.kind = ErrorKind::config, .what = "is not the state of a scheduler", .where = "scheduler state"});
  }
}

// Null stands for a number that was not finite.
double number_of(const json& number) {
  return number.is_null() ? std::numeric_limits<double>::quiet_NaN() : number.get<double>();
}

// The metric before the first one.
double worst(PlateauOptions::Mode mode) {
  return std::numeric_limits<double>::infinity() * (mode == PlateauOptions::Mode::min ? 1 : -1);
}

// Of the options of either scheduler.
template <class Options>
bool is_improvement(double metric, double best, const Options& options) {
  const bool minimizes = options.mode == PlateauOptions::Mode::min;
  const double sign = minimizes ? -1 : 1;
  const double bar = options.threshold_mode == PlateauOptions::ThresholdMode::rel
                         ? best * (1 + sign * options.threshold)
                         : best + sign * options.threshold;
  return minimizes ? metric < bar : metric > bar;
}

// JSON has no infinity: the best metric before the first step is written as null.
json best_or_null(double best) {
  return std::isfinite(best) ? json(best) : json(nullptr);
}

}  // namespace

Scheduler::Scheduler(torch::optim::Optimizer& optimizer, Schedule schedule)
    : optimizer_(&optimizer),
      schedule_(std::move(schedule)),
      base_lrs_(rates_of(optimizer)),
      last_lr_(base_lrs_) {
  apply();
}

void Scheduler::step() {
  ++last_epoch_;
  apply();
}

void Scheduler::apply() {
  const std::vector<double> current = rates_of(*optimizer_);
  auto& groups = optimizer_->param_groups();
  // Those that were added after the last step.
  for (std::size_t i = base_lrs_.size(); i < groups.size(); ++i) base_lrs_.push_back(current[i]);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    RatePoint point{.step = last_epoch_, .base = base_lrs_.at(i), .current = current[i], .group = i};
    groups[i].options().set_lr(schedule_.rate(point));
    if (!schedule_.momentum) continue;
    const bool changed = change_momentum(groups[i].options(), [&](double momentum) {
      point.base = point.current = momentum;
      return schedule_.momentum(point);
    });
    if (!changed) {
      throw Error({.what = "the optimizer has neither a momentum nor betas",
                   .where = "scheduler",
                   .hint = "set cycle_momentum to false"});
    }
  }
  last_lr_ = rates_of(*optimizer_);
}

std::string Scheduler::state() const {
  return json{{"last_epoch", last_epoch_}, {"base_lrs", base_lrs_}, {"_last_lr", last_lr_}}.dump();
}

void Scheduler::load_state(std::string_view state) {
  read_state(state, optimizer_->param_groups().size(),
             [&](const json& fields, const std::vector<double>& rates) {
               const auto epoch = fields.at("last_epoch").get<std::int64_t>();
               auto base = fields.at("base_lrs").get<std::vector<double>>();
               if (base.size() != rates.size()) {
                 throw Error({.kind = ErrorKind::config,
                              .what = "base_lrs and _last_lr differ in length",
                              .where = "scheduler state"});
               }
               last_epoch_ = epoch;
               base_lrs_ = std::move(base);
               last_lr_ = rates;
               set_rates(*optimizer_, rates);
             });
}

ReduceOnPlateau::ReduceOnPlateau(torch::optim::Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(&optimizer), options_(options), best_(worst(options.mode)) {
  if (options.factor >= 1) throw Error({.what = "must be below 1", .where = "reduce_on_plateau: factor"});
}

void ReduceOnPlateau::step(double metric) {
  ++last_epoch_;
  if (is_improvement(metric, best_, options_)) {
    best_ = metric;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_;
  }
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ <= options_.patience) return;
  reduce();
  cooldown_counter_ = options_.cooldown;
  num_bad_epochs_ = 0;
}

void ReduceOnPlateau::reduce() {
  for (OptimizerParamGroup& group : optimizer_->param_groups()) {
    const double before = group.options().get_lr();
    const double after = std::max(before * options_.factor, options_.min_lr);
    if (before - after > options_.eps) group.options().set_lr(after);
  }
}

std::vector<double> ReduceOnPlateau::last_lr() const {
  return rates_of(*optimizer_);
}

std::string ReduceOnPlateau::state() const {
  const json state{{"last_epoch", last_epoch_},
                   {"num_bad_epochs", num_bad_epochs_},
                   {"cooldown_counter", cooldown_counter_},
                   {"_last_lr", last_lr()},
                   {"best", best_or_null(best_)}};
  return state.dump();
}

void ReduceOnPlateau::load_state(std::string_view state) {
  ReduceOnPlateau loaded(*optimizer_, options_);
  read_state(state, optimizer_->param_groups().size(),
             [&](const json& fields, const std::vector<double>& rates) {
               // Absent before the first step: Python cannot read a null.
               if (fields.contains("best") && !fields["best"].is_null())
                 loaded.best_ = fields["best"].get<double>();
               loaded.num_bad_epochs_ = fields.at("num_bad_epochs").get<std::int64_t>();
               loaded.cooldown_counter_ = fields.at("cooldown_counter").get<std::int64_t>();
               loaded.last_epoch_ = fields.at("last_epoch").get<std::int64_t>();
               set_rates(*optimizer_, rates);
               *this = loaded;
             });
}

GreedyLr::GreedyLr(torch::optim::Optimizer& optimizer, const GreedyOptions& options)
    : optimizer_(&optimizer),
      options_(options),
      initial_lrs_(rates_of(optimizer)),
      progress_(initial_progress()) {
  if (options.factor >= 1) throw Error({.what = "must be below 1", .where = "greedy_lr: factor"});
}

GreedyLr::Progress GreedyLr::initial_progress() const {
  return {.best = worst(options_.mode), .reset_start = options_.reset_start};
}

double GreedyLr::smoothed(double metric) {
  if (!options_.smooth) return metric;
  std::vector<double>& window = progress_.window;
  window.push_back(metric);
  progress_.window_sum += metric;  // as Python does, to the same rounding
  if (window.size() > options_.window_size) {
    progress_.window_sum -= window.front();
    window.erase(window.begin());
  }
  return progress_.window_sum / static_cast<double>(window.size());
}

void GreedyLr::step(double metric) {
  const double current = smoothed(metric);
  ++last_epoch_;
  for (std::int64_t* pause : {&progress_.cooldown_counter, &progress_.warmup_counter}) {
    if (*pause == 0) continue;
    --*pause;
    progress_.num_bad_epochs = progress_.num_good_epochs = 0;
    return;
  }
  count(current);
  if (progress_.num_good_epochs > options_.patience) {
    increase();
    progress_.warmup_counter = options_.warmup;
    progress_.num_good_epochs = 0;
  } else if (progress_.num_bad_epochs > options_.patience) {
    reduce();
    progress_.cooldown_counter = options_.cooldown;
    progress_.num_bad_epochs = 0;
  }
}

void GreedyLr::count(double metric) {
  if (is_improvement(metric, progress_.best, options_)) {
    progress_.best = metric;
    progress_.num_bad_epochs = 0;
    ++progress_.num_good_epochs;
  } else {
    ++progress_.num_bad_epochs;
    progress_.num_good_epochs = 0;
  }
}

void GreedyLr::reduce() {
  bool all_at_min = true;
  for (OptimizerParamGroup& group : optimizer_->param_groups()) {
    const double before = group.options().get_lr();
    const double after = std::max(before * options_.factor, options_.min_lr);
    if (before - after > options_.eps) group.options().set_lr(after);
    all_at_min = all_at_min && group.options().get_lr() <= options_.min_lr;
  }
  if (!all_at_min || --progress_.reset_start > 0) return;
  set_rates(*optimizer_, initial_lrs_);
  progress_ = initial_progress();
}

void GreedyLr::increase() {
  for (OptimizerParamGroup& group : optimizer_->param_groups()) {
    const double before = group.options().get_lr();
    const double after = std::min(before / options_.factor, options_.max_lr);
    if (after - before > options_.eps) group.options().set_lr(after);
  }
  progress_.reset_start = options_.reset_start;
}

std::vector<double> GreedyLr::last_lr() const {
  return rates_of(*optimizer_);
}

std::string GreedyLr::state() const {
  json state{{"last_epoch", last_epoch_},
             {"best", best_or_null(progress_.best)},
             {"num_bad_epochs", progress_.num_bad_epochs},
             {"num_good_epochs", progress_.num_good_epochs},
             {"cooldown_counter", progress_.cooldown_counter},
             {"warmup_counter", progress_.warmup_counter},
             {"reset_start", progress_.reset_start},
             {"_last_lr", last_lr()},
             {"_init_lrs", initial_lrs_}};
  if (options_.smooth)
    state["_streaming_avg"] = {
        {"window_size", options_.window_size}, {"values", progress_.window}, {"sum", progress_.window_sum}};
  return state.dump();
}

void GreedyLr::load_state(std::string_view state) {
  GreedyLr loaded(*optimizer_, options_);
  read_state(state, initial_lrs_.size(), [&](const json& fields, const std::vector<double>& rates) {
    Progress& progress = loaded.progress_;
    if (fields.contains("best") && !fields["best"].is_null()) progress.best = fields["best"].get<double>();
    progress.num_bad_epochs = fields.at("num_bad_epochs").get<std::int64_t>();
    progress.num_good_epochs = fields.at("num_good_epochs").get<std::int64_t>();
    progress.cooldown_counter = fields.at("cooldown_counter").get<std::int64_t>();
    progress.warmup_counter = fields.at("warmup_counter").get<std::int64_t>();
    progress.reset_start = fields.at("reset_start").get<std::int64_t>();
    if (options_.smooth) {
      const json& average = fields.at("_streaming_avg");
      for (const json& metric : average.at("values")) progress.window.push_back(number_of(metric));
      progress.window_sum = number_of(average.at("sum"));
    }
    loaded.initial_lrs_ = fields.at("_init_lrs").get<std::vector<double>>();
    loaded.last_epoch_ = fields.at("last_epoch").get<std::int64_t>();
    set_rates(*optimizer_, rates);
    *this = loaded;
  });
}

}  // namespace acc
