// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_base.hpp"

#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/accelerator/settings_agreement.hpp"
#include "acc/runtime/comm/cuda_plugin.hpp"
#include "acc/runtime/comm/progress.hpp"
#include "acc/runtime/tensors/memory.hpp"
#include "acc/runtime/trainer/memory_tracker.hpp"
#include "acc/runtime/trainer/trainer_metrics.hpp"
#include "acc/runtime/trainer/trainer_optimizer.hpp"
#include "acc/runtime/trainer/trainer_progress.hpp"
#include "acc/runtime/trainer/trainer_schedule.hpp"
#include "acc/runtime/trainer/trainer_settings.hpp"
#include "acc/runtime/trainer/training_plan.hpp"
#include "acc/runtime/trainer/training_record.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

void set_tf32(bool on, const c10::Device& device) {
  if (on && !device.is_cuda())
    throw Error({.what = "there is no CUDA device", .where = "tf32", .hint = "leave it out"});
  at::globalContext().setAllowTF32CuBLAS(on);
  at::globalContext().setAllowTF32CuDNN(on);
}

// What only the program can give must be there.
void require_options(const TrainingArguments& arguments, const TrainerOptions& options) {
  const auto refuse = [](const char* argument, const char* hint) {
    throw Error({.what = "needs what the program gives", .where = argument, .hint = hint});
  };
  if (arguments.include_num_input_tokens_seen == TokenCount::non_padding && !options.pad_token_id)
    refuse("include_num_input_tokens_seen: non_padding", "set TrainerOptions::pad_token_id");
  if (arguments.batch_eval_metrics && options.compute_metrics)
    refuse("batch_eval_metrics", "set TrainerOptions::compute_batch_metrics instead of compute_metrics");
  if (!arguments.batch_eval_metrics && options.compute_batch_metrics)
    refuse("TrainerOptions::compute_batch_metrics", "set batch_eval_metrics");
}

}  // namespace

// The counters of one call of train.
struct TrainerBase::Counters {
  at::Tensor loss = {};
  double total_loss = 0;
  std::int64_t step_of_last_log = 0;
  std::int64_t first_step = 0;
  std::int64_t first_tokens = 0;
  std::optional<at::Tensor> grad_norm = {};
  std::optional<double> learning_rate = {};
  Clock::time_point started = Clock::now();
};

TrainerBase::TrainerBase(const TrainingArguments& arguments, TrainerOptions options)
    : arguments_(completed(arguments)),
      options_(std::move(options)),
      memory_(std::make_unique<detail::MemoryTracker>(!arguments_.skip_memory_metrics)),
      accelerator_(std::make_unique<Accelerator>(detail::accelerator_options(arguments_))),
      checkpoints_(arguments_.output_dir),
      training_record_(std::make_shared<detail::TrainingRecord>()) {
  require_options(arguments_, options_);
  if (arguments_.tf32) set_tf32(*arguments_.tf32, accelerator_->device());
  // The Trainer itself counts the batches of a step.
  accelerator_->set_gradient_accumulation_steps(1);
  set_seed(arguments_.seed, {.deterministic = arguments_.full_determinism});
  state_.is_local_process_zero = accelerator_->is_local_main_process();
  state_.is_world_process_zero = accelerator_->is_main_process();
  callbacks_.add(std::make_shared<detail::DefaultFlowCallback>());
  callbacks_.add(training_record_);
  for (auto& callback : options_.callbacks) callbacks_.add(std::move(callback));
  if (shows_progress())
    callbacks_.add(std::make_shared<detail::ProgressCallback>(::isatty(STDERR_FILENO) == 1));
  fire(&TrainerCallback::on_init_end);
  memory_->end_init(accelerator_->device());
}

TrainerBase::~TrainerBase() = default;

bool TrainerBase::shows_progress() const {
  return accelerator_->is_main_process() && !arguments_.disable_tqdm.value_or(false);
}

void TrainerBase::fire(void (TrainerCallback::*event)(const TrainingArguments&, TrainerState&,
                                                      TrainerControl&)) {
  callbacks_.call(event, arguments_, state_, control_);
}

void TrainerBase::require_no_label_smoothing() const {
  if (arguments().label_smoothing_factor == 0) return;
  throw Error({.what = "smooths labels for the default loss, and this model computes its own",
               .where = "label_smoothing_factor",
               .hint = "leave it out, and smooth labels in the loss that is compiled"});
}

std::shared_ptr<torch::optim::Optimizer> TrainerBase::create_optimizer() {
  return detail::optimizer_of(arguments_, module());
}

Schedule TrainerBase::create_schedule(std::int64_t num_training_steps) {
  if (options_.optimizer && arguments_.lr_scheduler_kwargs.contains("min_lr") &&
      arguments_.lr_scheduler_type != SchedulerType::reduce_lr_on_plateau &&
      arguments_.lr_scheduler_type != SchedulerType::greedy) {
    throw Error({.what = "min_lr is a part of learning_rate, which the program's own optimizer does not have",
                 .where = "lr_scheduler_kwargs",
                 .hint = "give min_lr_rate, a part of the optimizer's rate"});
  }
  return detail::schedule_of(arguments_, num_training_steps);
}

template <class MetricScheduler>
void TrainerBase::follow_metric(std::shared_ptr<MetricScheduler> scheduler) {
  accelerator_->prepare_scheduler(scheduler);
  step_by_metric_ = [scheduler](double metric) { scheduler->step(metric); };
  learning_rate_ = [scheduler] { return scheduler->last_lr().front(); };
}

void TrainerBase::create_scheduler(Optimizer& optimizer, std::int64_t max_steps) {
  scheduler_.reset();
  step_by_metric_ = {};
  if (arguments_.lr_scheduler_type == SchedulerType::reduce_lr_on_plateau && !options_.schedule)
    return follow_metric(
        std::make_shared<ReduceOnPlateau>(optimizer.native(), detail::plateau_options_of(arguments_)));
  if (arguments_.lr_scheduler_type == SchedulerType::greedy && !options_.schedule)
    return follow_metric(
        std::make_shared<GreedyLr>(optimizer.native(), detail::greedy_options_of(arguments_)));
  // PyTorch's schedules begin with the rates that the optimizer had before the first of them.
  auto& groups = optimizer.native().param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i == initial_rates_.size()) initial_rates_.push_back(groups[i].options().get_lr());
    groups[i].options().set_lr(initial_rates_[i]);
  }
  scheduler_ = std::make_shared<Scheduler>(
      optimizer.native(), options_.schedule ? *options_.schedule : create_schedule(max_steps));
  accelerator_->prepare_scheduler(scheduler_);
  learning_rate_ = [this] { return scheduler_->last_lr().front(); };
}

void TrainerBase::continue_with(detail::TrainingPlan& plan, const LoaderPosition& from) {
  const std::int64_t steps_from_start = plan.max_steps;
  if (training_record_->is_loaded(state_)) {
    plan.max_steps = state_.max_steps;
    plan.num_train_epochs = state_.num_train_epochs;
  } else if (train_batches()) {
    detail::plan_rest(plan, arguments_, state_.global_step, from);
  }
  if (plan.max_steps != steps_from_start && scheduler_ && !options_.schedule)
    scheduler_->set_schedule(create_schedule(plan.max_steps));
}

void TrainerBase::show_banner(const detail::TrainingPlan& plan) {
  if (!shows_progress()) return;
  std::int64_t num_trainable = 0;
  for (const at::Tensor& parameter : module().parameters())
    if (parameter.requires_grad()) num_trainable += parameter.numel();
  std::fputs(detail::banner_of(plan, arguments_, num_trainable).c_str(), stderr);
}

TrainOutput TrainerBase::train(const std::string& resume_from_checkpoint) {
  const auto stage = memory_->begin("train");
  if (!arguments_.auto_find_batch_size) return train_once(resume_from_checkpoint);
  if (accelerator_->num_processes() > 1)
    throw Error({.what = "is for a process alone: others would wait for the one whose memory runs out",
                 .where = "auto_find_batch_size",
                 .hint = "find the size on one process"});
  const auto train_with = [&](std::size_t batch_size) {
    if (static_cast<int>(batch_size) < arguments_.per_device_train_batch_size && shows_progress())
      std::fprintf(stderr, "  Out of memory: beginning again with per_device_train_batch_size %zu\n",
                   batch_size);
    arguments_.per_device_train_batch_size = static_cast<int>(batch_size);
    return train_once(resume_from_checkpoint);
  };
  return find_executable_batch_size(train_with,
                                    static_cast<std::size_t>(arguments_.per_device_train_batch_size));
}

TrainOutput TrainerBase::train_once(const std::string& resume_from_checkpoint) {
  const std::string& choice =
      resume_from_checkpoint.empty() ? arguments_.resume_from_checkpoint : resume_from_checkpoint;
  if (const auto& group = accelerator_->process_group())
    detail::require_same_settings(detail::shared_settings(arguments_, choice), *group);
  require_possible();
  accelerator_->free_memory();
  prepare_training();
  const auto native = options_.optimizer ? options_.optimizer : create_optimizer();
  if (std::exchange(native_, native) != native) initial_rates_.clear();
  optimizer_ = accelerator_->prepare_optimizer(native);
  std::optional<detail::TrainingDataSize> size;
  if (const auto batches = train_batches()) size = {*batches, num_train_examples()};
  detail::TrainingPlan plan = detail::plan_training(arguments_, accelerator_->num_processes(), size);
  training_record_->set(plan);
  create_scheduler(*optimizer_, plan.max_steps);

  state_ = {.is_local_process_zero = state_.is_local_process_zero,
            .is_world_process_zero = state_.is_world_process_zero};
  checkpoints_.forget_own();
  const bool resumed = resume_from(choice);
  LoaderPosition position;
  if (resumed) {
    position = train_position();
    if (arguments_.ignore_data_skip) position = {.epoch = position.epoch + (position.finished ? 1 : 0)};
    continue_with(plan, position);
  }
  set_intervals(plan);
  if (!arguments_.report_to.empty())
    accelerator_->init_trackers(arguments_.run_name.empty() ? "trainer" : arguments_.run_name,
                                detail::tracked_config(arguments_));

  show_banner(plan);
  Counters counters;
  counters.loss = at::zeros({}, at::TensorOptions(accelerator_->device()));
  counters.first_step = counters.step_of_last_log = state_.global_step;
  counters.first_tokens = state_.num_input_tokens_seen;
  const detail::ProgressTraining progress(state_.global_step);
  if (resumed && shows_progress())
    std::fprintf(stderr, "  Resuming training from checkpoint with epoch %ld and global step %ld\n",
                 long(position.epoch), long(state_.global_step));

  is_training_ = true;
  const auto end_training = [](bool* is_training) { *is_training = false; };
  const std::unique_ptr<bool, decltype(end_training)> also_if_it_throws(&is_training_, end_training);
  stopped_ = false;
  control_ = {};
  clear_gradients();
  fire(&TrainerCallback::on_train_begin);
  // No step led to its metrics: they are neither the best nor a reason for another rate, as in transformers.
  if (arguments_.eval_on_start) evaluate_in_training();
  // The signals count from here on, not only from the end of the first step.
  if (arguments_.enable_jit_checkpoint) accelerator_->should_stop();
  // Nothing is left to train after a checkpoint of the last step, but the end of its epoch may follow.
  const auto goes_on = [&, ended = training_record_->epoch_ended()] {
    return !control_.should_training_stop &&
           (position.finished || (position.in_pass() && !ended) || state_.global_step < plan.max_steps);
  };
  const auto num_epochs = static_cast<std::uint64_t>(plan.num_train_epochs);
  for (; position.epoch < num_epochs && goes_on(); position = {.epoch = position.epoch + 1})
    train_epoch(plan, counters, position);
  return finish(plan, counters);
}

// What would end the training only when it first saves.
void TrainerBase::require_possible() const {
  const bool saves = arguments_.save_strategy != SaveStrategy::no || arguments_.enable_jit_checkpoint;
  detail::together(detail::processes_of(*accelerator_), [&] {
    if (saves && accelerator_->should_save_model()) checkpoints_.require_writable();
  });
}

void TrainerBase::set_intervals(const detail::TrainingPlan& plan) {
  state_.max_steps = plan.max_steps;
  state_.num_train_epochs = plan.num_train_epochs;
  state_.train_batch_size = arguments_.per_device_train_batch_size;
  state_.logging_steps = detail::steps_of(arguments_.logging_steps, plan.max_steps);
  state_.save_steps = detail::steps_of(arguments_.save_steps, plan.max_steps);
  memory_save_steps_ =
      arguments_.memory_save_steps > 0 ? detail::steps_of(arguments_.memory_save_steps, plan.max_steps) : 0;
  if (arguments_.eval_steps) state_.eval_steps = detail::steps_of(*arguments_.eval_steps, plan.max_steps);
}

void TrainerBase::train_epoch(const detail::TrainingPlan& plan, Counters& counters,
                              const LoaderPosition& from) {
  control_.should_epoch_stop = false;
  training_record_->set_epoch_ended(false);
  fire(&TrainerCallback::on_epoch_begin);
  begin_epoch(from.epoch, from.in_pass());
  std::size_t batches_done = from.batches;
  const auto is_over = [&] { return control_.should_epoch_stop || control_.should_training_stop; };
  const bool has_steps = !from.in_pass() || state_.global_step < plan.max_steps;
  while (has_steps && !is_over()) {
    const std::size_t batches =
        read_batches(static_cast<std::size_t>(arguments_.gradient_accumulation_steps));
    if (batches == 0) break;
    control_.should_log = control_.should_evaluate = control_.should_save = false;
    fire(&TrainerCallback::on_step_begin);
    for (std::size_t i = 0; i < batches && !is_over(); ++i) {
      const bool is_last = i + 1 == batches;
      accelerator_->set_sync_gradients(is_last);
      const at::Tensor loss = detail::loss_of_step(train_on(i, batches, is_last));
      count_input_tokens(i);
      if (arguments_.logging_nan_inf_filter && !at::isfinite(loss).item<bool>()) {
        counters.loss += counters.loss / double(1 + state_.global_step - counters.step_of_last_log);
      } else {
        counters.loss += loss;
      }
      ++batches_done;
      if (!is_last) {
        fire(&TrainerCallback::on_substep_end);
        continue;
      }
      step_optimizer(counters);
      detail::report_training_steps(++state_.global_step);
      state_.epoch = double(from.epoch) + std::min(1.0, double(batches_done) / double(plan.batches_in_epoch));
      fire(&TrainerCallback::on_step_end);
      stop_if_asked();
      const bool saves = memory_save_steps_ > 0 && state_.global_step % memory_save_steps_ == 0;
      // A model alone is no state to go on from.
      const bool goes_to_disk = control_.should_save && !arguments_.save_only_model;
      log_save_evaluate(counters);
      if (saves && !goes_to_disk && !is_over()) save_in_memory();
    }
  }
  if (control_.should_epoch_stop) {
    skip_rest_of_epoch();
    // Those of a step that was begun do not go into the first one of the next epoch.
    accelerator_->set_sync_gradients(true);
    clear_gradients();
  }
  end_epoch();
  if (batches_done == 0 && !from.in_pass() && !is_over()) {
    // A pass without batches: an iterable data set has ended before max_steps, and will not have more.
    control_.should_training_stop = true;
  }
  training_record_->set_epoch_ended(true);
  fire(&TrainerCallback::on_epoch_end);
  if (stopped_) control_.should_evaluate = control_.should_save = false;
  log_save_evaluate(counters);
}

// transformers' JITCheckpointCallback, which looks at its own process only.
void TrainerBase::stop_if_asked() {
  if (!arguments_.enable_jit_checkpoint || !accelerator_->should_stop()) return;
  stopped_ = !control_.should_training_stop;
  control_.should_training_stop = control_.should_save = true;
  if (stopped_) control_.should_evaluate = false;
  if (stopped_ && shows_progress())
    std::fprintf(stderr, "  Asked to end: saving a checkpoint of step %ld\n", long(state_.global_step));
}

void TrainerBase::count_input_tokens(std::size_t batch) {
  if (arguments_.include_num_input_tokens_seen == TokenCount::no) return;
  const auto options = at::TensorOptions(accelerator_->device()).dtype(at::kLong);
  const at::Tensor tokens = at::full({1}, num_tokens(inputs_of(batch)), options);
  state_.num_input_tokens_seen += accelerator_->gather(tokens).sum().item<std::int64_t>();
}

std::int64_t TrainerBase::num_tokens(const at::Tensor& inputs) const {
  if (!inputs.defined()) return 0;
  if (arguments_.include_num_input_tokens_seen == TokenCount::all) return inputs.numel();
  return inputs.ne(*options_.pad_token_id).sum().item<std::int64_t>();
}

void TrainerBase::free_unused_memory() const {
  const auto& steps = arguments_.torch_empty_cache_steps;
  if (!steps || !accelerator_->device().is_cuda() || state_.global_step % *steps != 0) return;
  detail::cuda_table().empty_cache();
}

void TrainerBase::step_optimizer(Counters& counters) {
  const double max_norm =
      arguments_.max_grad_norm > 0 ? arguments_.max_grad_norm : std::numeric_limits<double>::infinity();
  counters.grad_norm = accelerator_->clip_grad_norm_(module().parameters(), max_norm);
  fire(&TrainerCallback::on_pre_optimizer_step);
  optimizer_->step();
  fire(&TrainerCallback::on_optimizer_step);
  counters.learning_rate = learning_rate_();
  if (scheduler_ && !accelerator_->optimizer_step_was_skipped()) scheduler_->step();
  clear_gradients();
}

// Also those that the optimizer does not step: they would add up, and count in the norm by which all are
// clipped.
void TrainerBase::clear_gradients() {
  optimizer_->zero_grad();
  module().zero_grad();
}

void TrainerBase::log(Metrics entry) {
  entry["epoch"] = state_.epoch;
  if (arguments_.include_num_input_tokens_seen != TokenCount::no)
    entry["num_input_tokens_seen"] = double(state_.num_input_tokens_seen);
  control_.should_log = false;
  callbacks_.call(&TrainerCallback::on_log, arguments_, state_, control_, entry);
  if (!arguments_.report_to.empty() && is_training_)
    accelerator_->log(detail::tracked_values(entry), state_.global_step);
  entry["step"] = double(state_.global_step);
  state_.log_history.push_back(std::move(entry));
}

void TrainerBase::log_save_evaluate(Counters& counters) {
  if (control_.should_log && state_.global_step > counters.step_of_last_log) {
    const auto loss = accelerator_->gather(counters.loss.reshape({1})).mean().item<double>();
    counters.loss.zero_();
    Metrics entry = {{"loss", loss / double(state_.global_step - counters.step_of_last_log)}};
    if (counters.grad_norm) entry["grad_norm"] = counters.grad_norm->item<double>();
    if (counters.learning_rate) entry["learning_rate"] = *counters.learning_rate;
    if (arguments_.include_num_input_tokens_seen != TokenCount::no)
      detail::add_token_speed(entry, detail::seconds_since(counters.started),
                              double(state_.num_input_tokens_seen - counters.first_tokens));
    counters.total_loss += loss;
    counters.step_of_last_log = state_.global_step;
    log(std::move(entry));
  }
  if (control_.should_evaluate) use_metrics(evaluate_in_training());
  // Also if on_log or on_evaluate said so; the pass of an epoch that has ended is over anyway.
  if (control_.should_epoch_stop && !training_record_->epoch_ended()) skip_rest_of_epoch();
  if (control_.should_save) {
    save_checkpoint();
    control_.should_save = false;
    fire(&TrainerCallback::on_save);
  }
}

void TrainerBase::use_metrics(const Metrics& metrics) {
  if (arguments_.metric_for_best_model.empty()) return;
  const double value = detail::metric_for_best_model(arguments_, metrics);
  const bool is_best = detail::is_better(arguments_, value, state_.best_metric);
  if (is_best) {
    state_.best_metric = value;
    if (arguments_.save_strategy != SaveStrategy::no) state_.best_global_step = state_.global_step;
  }
  if (arguments_.save_strategy == SaveStrategy::best) control_.should_save = is_best;
  if (step_by_metric_) step_by_metric_(value);
}

TrainOutput TrainerBase::finish(const detail::TrainingPlan& plan, Counters& counters) {
  accelerator_->wait_for_save();
  counters.total_loss += accelerator_->gather(counters.loss.reshape({1})).mean().item<double>();
  const std::int64_t steps = state_.global_step - counters.first_step;
  TrainOutput output{.global_step = state_.global_step,
                     .training_loss = steps > 0 ? counters.total_loss / double(steps) : 0};
  const double share = plan.max_steps > 0 ? double(steps) / double(plan.max_steps) : 0;
  detail::add_speed(output.metrics, "train", detail::seconds_since(counters.started),
                    plan.num_train_samples * share, double(steps));
  output.metrics["train_loss"] = output.training_loss;
  memory_->end("train", output.metrics);
  log(output.metrics);
  output.metrics["epoch"] = state_.epoch;
  if (arguments_.load_best_model_at_end && !stopped_) load_best_model();
  // With a limit of 1 only the best checkpoint is kept. Until now the newest was needed for resuming.
  const fs::path& best = state_.best_model_checkpoint;
  if (arguments_.save_total_limit == 1 && !best.empty() && !stopped_) {
    accelerator_->wait_for_everyone();
    accelerator_->on_main_process([&] { checkpoints_.remove_all_but(best); });
  }
  fire(&TrainerCallback::on_train_end);
  return output;
}

void TrainerBase::load_best_model() {
  accelerator_->wait_for_everyone();
  if (const fs::path& best = state_.best_model_checkpoint; !best.empty()) {
    load_weights(best);
  } else if (shows_progress()) {
    std::fprintf(stderr, "  No checkpoint is the best: the model keeps the weights of the last step\n");
  }
}

void TrainerBase::save_model(fs::path folder) {
  if (refuses_saves_) SaveRefusal::refuse("save_model", "save");
  if (folder.empty()) folder = arguments_.output_dir;
  save_weights(folder);
  accelerator_->on_main_process(
      [&] { replace_file(folder / detail::kTrainingArgumentsFile, to_json(arguments_)); });
}

void TrainerBase::save_state() {
  accelerator_->on_main_process([&] {
    fs::create_directories(arguments_.output_dir);
    replace_file(arguments_.output_dir / detail::kTrainerStateFile, to_json(state_));
  });
}

void TrainerBase::save_metrics(const std::string& split, const Metrics& metrics) {
  accelerator_->on_main_process([&] {
    fs::create_directories(arguments_.output_dir);
    replace_file(arguments_.output_dir / (split + "_results.json"), nlohmann::json(metrics).dump(4) + "\n");
  });
}

}  // namespace acc
