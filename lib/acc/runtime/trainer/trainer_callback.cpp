// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_callback.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <ranges>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc {

void EarlyStoppingCallback::on_train_begin(const Arguments& arguments, State& /*state*/,
                                           Control& /*control*/) {
  const auto refuse = [](const char* what, const char* hint) {
    throw Error({.what = what, .where = "EarlyStoppingCallback", .hint = hint});
  };
  if (arguments.metric_for_best_model.empty())
    refuse("needs a metric", "set load_best_model_at_end or metric_for_best_model");
  if (arguments.eval_strategy == IntervalStrategy::no)
    refuse("needs evaluations", "set eval_strategy to steps or epoch");
  is_before_first_step_ = arguments.eval_on_start;
}

// The Trainer updates best_metric after this event: `state` has the best metric of the earlier evaluations.
void EarlyStoppingCallback::on_evaluate(const Arguments& arguments, State& state, Control& control,
                                        const Metrics& metrics) {
  if (is_before_first_step_) return;
  const auto value = detail::find_metric_for_best_model(arguments, metrics);
  if (!value) return;  // The Trainer refuses a metric that no evaluation set has.
  const bool improved = detail::is_better(arguments, *value, state.best_metric) &&
                        !(std::abs(*value - state.best_metric.value_or(NAN)) <= threshold_);
  evaluations_without_improvement_ = improved ? 0 : evaluations_without_improvement_ + 1;
  if (evaluations_without_improvement_ >= patience_) control.should_training_stop = true;
}

std::string EarlyStoppingCallback::state() const {
  const nlohmann::json object = {
      {"args", {{"early_stopping_patience", patience_}, {"early_stopping_threshold", threshold_}}},
      {"attributes", {{"early_stopping_patience_counter", evaluations_without_improvement_}}}};
  return object.dump();
}

void EarlyStoppingCallback::load_state(std::string_view json) {
  const nlohmann::json object = nlohmann::json::parse(json);
  evaluations_without_improvement_ = object.at("attributes").at("early_stopping_patience_counter").get<int>();
}

namespace detail {

void DefaultFlowCallback::on_step_end(const Arguments& arguments, State& state, Control& control) {
  const auto due = [&](std::int64_t every) { return state.global_step % every == 0; };
  const bool may_evaluate = arguments.eval_strategy == IntervalStrategy::steps &&
                            arguments.eval_delay <= static_cast<double>(state.global_step);
  if (state.global_step == 1 && arguments.logging_first_step) control.should_log = true;
  if (arguments.logging_strategy == IntervalStrategy::steps && due(state.logging_steps))
    control.should_log = true;
  if (may_evaluate && due(state.eval_steps)) control.should_evaluate = true;
  if (arguments.save_strategy == SaveStrategy::steps && due(state.save_steps)) control.should_save = true;

  if (state.global_step < state.max_steps) return;
  control.should_training_stop = true;
  if (may_evaluate) control.should_evaluate = true;
  if (arguments.save_strategy == SaveStrategy::steps) control.should_save = true;
}

void DefaultFlowCallback::on_epoch_end(const Arguments& arguments, State& state, Control& control) {
  if (arguments.logging_strategy == IntervalStrategy::epoch) control.should_log = true;
  if (arguments.eval_strategy == IntervalStrategy::epoch && arguments.eval_delay <= state.epoch)
    control.should_evaluate = true;
  if (arguments.save_strategy == SaveStrategy::epoch) control.should_save = true;
}

std::map<std::string, std::string> CallbackHandler::states() const {
  std::map<std::string, std::vector<std::string>> all;
  for (const auto& callback : callbacks_)
    if (!callback->name().empty()) all[callback->name()].push_back(callback->state());
  std::map<std::string, std::string> states;
  for (const auto& [name, texts] : all) {
    // Of one callback, too, where its state could be taken for that of several.
    const bool is_list = texts.size() > 1 || nlohmann::json::parse(texts.front(), nullptr, false).is_array();
    states[name] = is_list ? "[" + join(texts, ", ") + "]" : texts.front();
  }
  return states;
}

void CallbackHandler::load_states(const std::map<std::string, std::string>& states) const {
  std::map<std::string, std::size_t> loaded;
  for (const auto& callback : callbacks_) {
    const auto found = states.find(callback->name());
    if (found == states.end() || callback->name().empty()) continue;
    try {
      nlohmann::json list = nlohmann::json::parse(found->second);
      if (!list.is_array()) list = nlohmann::json::array({list});
      const std::size_t index = loaded[callback->name()]++;
      if (index < list.size()) callback->load_state(list[index].dump());
    } catch (const nlohmann::json::exception& error) {
      throw Error({.kind = ErrorKind::config,
                   .what = std::string("its state cannot be read: ") + error.what(),
                   .where = callback->name()});
    }
  }
}

namespace {

std::string best_metric_name(const TrainingArguments& arguments) {
  const std::string& wanted = arguments.metric_for_best_model;
  return wanted.starts_with("eval_") ? wanted : "eval_" + wanted;
}

}  // namespace

std::optional<double> find_metric_for_best_model(const TrainingArguments& arguments, const Metrics& metrics) {
  const auto metric = metrics.find(best_metric_name(arguments));
  return metric == metrics.end() ? std::nullopt : std::optional(metric->second);
}

double metric_for_best_model(const TrainingArguments& arguments, const Metrics& metrics) {
  if (const auto metric = find_metric_for_best_model(arguments, metrics)) return *metric;
  throw Error({.what = "the evaluation has no metric " + best_metric_name(arguments),
               .where = "metric_for_best_model",
               .hint = fmt::format("its metrics are {}", fmt::join(metrics | std::views::keys, ", "))});
}

bool is_better(const TrainingArguments& arguments, double value, std::optional<double> best) {
  if (std::isnan(value)) return false;
  if (!best || std::isnan(*best)) return true;
  return arguments.greater_is_better.value_or(false) ? value > *best : value < *best;
}

}  // namespace detail
}  // namespace acc
