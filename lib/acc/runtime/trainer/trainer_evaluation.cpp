// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/accelerator/settings_agreement.hpp"
#include "acc/runtime/comm/progress.hpp"
#include "acc/runtime/tensors/memory.hpp"
#include "acc/runtime/trainer/evaluation_results.hpp"
#include "acc/runtime/trainer/low_precision_weights.hpp"
#include "acc/runtime/trainer/memory_tracker.hpp"
#include "acc/runtime/trainer/trainer_base.hpp"
#include "acc/runtime/trainer/trainer_metrics.hpp"

namespace acc {
namespace {

bool has_labels(const EvalPrediction& prediction) {
  if (!prediction.batches.empty()) return has_labels(prediction.batches.front());
  return prediction.predictions.defined() && prediction.label_ids.defined();
}

}  // namespace

Metrics TrainerBase::evaluate_in_training() {
  try {
    Metrics metrics = evaluate();
    control_.should_evaluate = false;
    return metrics;
  } catch (const std::exception& error) {
    if (!arguments_.auto_find_batch_size || !is_out_of_memory(error)) throw;
    // In words that begin no new search.
    throw Error({.kind = ErrorKind::system,
                 .what = "the memory does not suffice for an evaluation",
                 .where = "per_device_eval_batch_size",
                 .hint = "make it smaller: auto_find_batch_size finds that of the training alone"});
  }
}

Metrics TrainerBase::evaluate() {
  const std::vector<std::string> names = eval_names();
  if (names.empty())
    throw Error({.what = "there is no evaluation data",
                 .where = "Trainer",
                 .hint = "give it after the training data, or set eval_strategy to no"});
  Metrics all;
  for (const std::string& name : names) {
    control_.should_evaluate = name != names.back();  // more sets follow
    const std::string prefix = name.empty() ? "eval" : "eval_" + name;
    // Of the memory, whose metrics do not name the set, those of the last one count.
    const PredictionOutput output = run_evaluation(evaluation_pass(name), "Evaluation", prefix, false);
    for (const auto& [metric, value] : output.metrics) all[metric] = value;
  }
  return all;
}

std::optional<at::ScalarType> TrainerBase::evaluation_type() const {
  if (is_training_) return std::nullopt;
  if (arguments_.bf16_full_eval) return at::kBFloat16;
  if (arguments_.fp16_full_eval) return at::kHalf;
  return std::nullopt;
}

TrainerBase::SaveRefusal::SaveRefusal(TrainerBase& trainer)
    : trainer_(trainer),
      save_hook_(trainer.accelerator().register_save_state_pre_hook(
          [](const auto& /*weights*/, const auto& /*folder*/) { refuse("save_state", "save"); })),
      load_hook_(trainer.accelerator().register_load_state_pre_hook(
          [](const auto& /*models*/, const auto& /*folder*/) { refuse("load_state", "load"); })),
      refused_before_(std::exchange(trainer.refuses_saves_, true)) {}

TrainerBase::SaveRefusal::~SaveRefusal() {
  trainer_.refuses_saves_ = refused_before_;
  load_hook_.remove();
  save_hook_.remove();
}

void TrainerBase::SaveRefusal::refuse(const char* function, const char* action) {
  throw Error({.what = "the weights are in half precision while this evaluation lasts",
               .where = function,
               .hint = fmt::format("{} before or after it, as in on_evaluate or on_predict; or leave out "
                                   "bf16_full_eval and fp16_full_eval",
                                   action)});
}

detail::KeptResults TrainerBase::kept_results(bool wants_predictions) const {
  const bool has_metrics = options_.compute_metrics || options_.compute_batch_metrics;
  const bool keeps = wants_predictions || (has_metrics && !arguments_.prediction_loss_only);
  return {.predictions = keeps,
          .inputs = keeps && contains(arguments_.include_for_metrics, "inputs"),
          .losses = keeps && contains(arguments_.include_for_metrics, "loss"),
          .after_batch = wants_predictions || !arguments_.batch_eval_metrics,
          .preprocess_logits = options_.preprocess_logits_for_metrics};
}

// Results are gathered batch by batch. A process that had no more would go on without the others.
void TrainerBase::require_as_many_batches(const EvaluationPass& pass) const {
  if (accelerator_->even_batches() || !pass.num_batches) return;
  const auto batches =
      detail::find_difference(std::to_string(*pass.num_batches), accelerator_->process_group().get());
  if (!batches) return;
  throw Error({.kind = ErrorKind::config,
               .what = fmt::format("has {} batches on rank 0, and {} on rank {}", batches->first,
                                   batches->other, batches->other_rank),
               .where = "evaluation",
               .hint = "leave out even_batches false, or give it as many batches for each process"});
}

PredictionOutput TrainerBase::run_evaluation(const EvaluationPass& pass, const char* title,
                                             const std::string& prefix, bool wants_predictions) {
  const char* const memory_stage = wants_predictions ? "test" : "eval";
  const auto stage = memory_->begin(memory_stage);
  const auto start = std::chrono::steady_clock::now();
  const ProgressSection section(Section::evaluation);
  require_as_many_batches(pass);
  if (evaluation_type())
    detail::LowPrecisionWeights::require_possible(
        module(), arguments_.bf16_full_eval ? "bf16_full_eval" : "fp16_full_eval");
  if (!is_training_ && shows_progress())
    std::fprintf(stderr, "***** Running %s *****\n  Num examples = %s\n  Batch size = %d\n", title,
                 pass.num_batches ? std::to_string(pass.num_examples).c_str() : "Unknown",
                 arguments_.per_device_eval_batch_size);
  detail::EvaluationResults results(*accelerator_, kept_results(wants_predictions));
  std::size_t examples = 0;
  Metrics metrics;
  std::optional<EvalPrediction> last;  // until another batch shows that it was not
  pass.for_each([&](const LossOutput& output, std::int64_t rows, const at::Tensor& inputs) {
    examples += static_cast<std::size_t>(rows);
    EvalPrediction batch = results.add(output, rows, inputs);
    if (options_.compute_batch_metrics && has_labels(batch)) {
      if (last) options_.compute_batch_metrics(*last, false);
      last = std::move(batch);
    }
    callbacks_.call(&TrainerCallback::on_prediction_step, arguments_, state_, control_, pass.num_batches);
  });
  if (pass.num_batches) examples = pass.num_examples;

  const EvalPrediction all = arguments_.eval_do_concat_batches ? results.concatenated()
                                                               : EvalPrediction{.batches = results.batches()};
  if (last) metrics = options_.compute_batch_metrics(*last, true);
  if (options_.compute_metrics && has_labels(all)) metrics = options_.compute_metrics(all);
  PredictionOutput result{.predictions = all.predictions, .label_ids = all.label_ids, .batches = all.batches};
  for (const auto& [name, value] : metrics)
    result.metrics[name.starts_with(prefix + "_") ? name : prefix + "_" + name] = value;
  if (const auto loss = results.mean_loss(arguments_.logging_nan_inf_filter))
    result.metrics[prefix + "_loss"] = *loss;
  const double total_batch = double(arguments_.per_device_eval_batch_size) * accelerator_->num_processes();
  detail::add_speed(result.metrics, prefix, detail::seconds_since(start), double(examples),
                    std::ceil(double(examples) / total_batch));
  if (wants_predictions) {
    callbacks_.call(&TrainerCallback::on_predict, arguments_, state_, control_, result.metrics);
  } else {
    log(result.metrics);
    result.metrics["epoch"] = state_.epoch;
    callbacks_.call(&TrainerCallback::on_evaluate, arguments_, state_, control_, result.metrics);
  }
  memory_->end(memory_stage, result.metrics);
  return result;
}

}  // namespace acc
