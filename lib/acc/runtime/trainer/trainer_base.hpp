// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/data/loader_plan.hpp"
#include "acc/runtime/trainer/default_loss.hpp"
#include "acc/runtime/trainer/trainer_callback.hpp"
#include "acc/runtime/trainer/trainer_checkpoints.hpp"
#include "acc/runtime/trainer/trainer_state.hpp"
#include "acc/runtime/trainer/training_arguments.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace acc {

namespace detail {
class MemoryTracker;
class TrainingRecord;
struct KeptResults;
struct TrainingPlan;
}  // namespace detail

/// The result of Trainer::compute_loss for a batch.
struct LossOutput {
  /// A tensor with one element; undefined for a batch without labels in prediction.
  at::Tensor loss = {};
  /// The model's predictions, a row for each sample; may be undefined.
  at::Tensor logits = {};
  /// The labels, a row for each sample; may be undefined.
  at::Tensor labels = {};
};

/// The predictions and labels of a whole data set, in its order.
struct EvalPrediction {
  at::Tensor predictions = {};  ///< The logits.
  at::Tensor label_ids = {};    ///< The labels.
  /// The first tensor of each batch, if TrainingArguments::include_for_metrics has `inputs`.
  at::Tensor inputs = {};
  /// For each sample the mean loss of its batch, if include_for_metrics has `loss`.
  at::Tensor losses = {};
  /// Without TrainingArguments::eval_do_concat_batches, these are here for each batch, and not above.
  std::vector<EvalPrediction> batches = {};
};

/// Returns what is kept of a batch's logits for metrics, such as their maxima: a row for each sample.
using PreprocessLogits = std::function<at::Tensor(const at::Tensor& logits, const at::Tensor& labels)>;

/// Computes metrics from all predictions; they are reported with the prefix `eval_`.
using ComputeMetrics = std::function<Metrics(const EvalPrediction&)>;

/// Computes metrics from the predictions for one batch after the other. Those that it returns for the last
/// one, for which `compute_result` is true, are reported.
using ComputeBatchMetrics = std::function<Metrics(const EvalPrediction& batch, bool compute_result)>;

/// The result of Trainer::train.
struct TrainOutput {
  std::int64_t global_step = 0;  ///< Steps of the optimizer, over all calls.
  /// The mean loss over the steps of this call.
  double training_loss = 0;
  /// `train_runtime` (seconds), `train_samples_per_second`, `train_steps_per_second`, `train_loss`, `epoch`,
  /// and what TrainingArguments::skip_memory_metrics leaves out.
  Metrics metrics = {};
};

/// The result of Trainer::predict.
struct PredictionOutput {
  at::Tensor predictions = {};  ///< The logits.
  at::Tensor label_ids = {};    ///< The labels.
  /// Without TrainingArguments::eval_do_concat_batches, these are here for each batch, and not above.
  std::vector<EvalPrediction> batches = {};
  /// The metrics of evaluate() with the prefix `test_`.
  Metrics metrics = {};
};

/// The optional arguments of a Trainer.
struct TrainerOptions {
  ComputeMetrics compute_metrics = {};  ///< Called after each evaluation; empty: only the loss is reported.
  /// Used instead of compute_metrics with TrainingArguments::batch_eval_metrics.
  ComputeBatchMetrics compute_batch_metrics = {};
  PreprocessLogits preprocess_logits_for_metrics = {};  ///< Called for each batch of an evaluation, if set.
  /// What TrainingArguments::include_num_input_tokens_seen does not count as non_padding.
  std::optional<std::int64_t> pad_token_id = {};
  std::vector<std::shared_ptr<TrainerCallback>> callbacks = {};  ///< Called in this order.
  /// Used instead of the optimizer that TrainingArguments::optim names.
  std::shared_ptr<torch::optim::Optimizer> optimizer = {};
  /// Used instead of the schedule that TrainingArguments::lr_scheduler_type names.
  std::optional<Schedule> schedule = {};
};

/// The part of a Trainer that does not depend on the types of model and data. All processes must call all
/// functions but the accessors, together.
class TrainerBase {
 public:
  virtual ~TrainerBase();
  TrainerBase(const TrainerBase&) = delete;
  TrainerBase& operator=(const TrainerBase&) = delete;

  /// Trains according to the arguments, from the start or from a checkpoint: `resume_from_checkpoint`, by
  /// default that of the arguments, is a folder or `last`. A training that was killed and resumed ends with
  /// the same weights as one that was not. Throws Error{usage} for invalid arguments and for those that
  /// differ between processes, Error{config} for a
  /// checkpoint that does not fit and when processes find different ones or cannot write to output_dir, and
  /// what the data, the model and callbacks throw.
  ///
  /// After a restart in a job with `--memory-checkpoints` it goes on from the newest state that this training
  /// has saved, in memory (memory_save_steps) or on a disk, unless resume_from_checkpoint is a folder or
  /// `false`.
  ///
  /// With auto_find_batch_size it begins again with nine tenths of the batch size when memory runs out, as
  /// find_executable_batch_size; what callbacks have seen, and the weights, remain.
  TrainOutput train(const std::string& resume_from_checkpoint = {});

  /// Evaluates on the evaluation data and returns `eval_loss`, the metrics of compute_metrics, `eval_runtime`
  /// (seconds), `eval_samples_per_second`, `eval_steps_per_second` and `epoch`; of several evaluation sets
  /// for each, with its name behind `eval`; and what skip_memory_metrics leaves out. Throws Error{usage}
  /// without evaluation data, and if bf16_full_eval or fp16_full_eval cannot convert the model; Error{config}
  /// if processes have different numbers of batches, as they may with even_batches false.
  virtual Metrics evaluate();

  /// With the defaults that depend on others filled in.
  const TrainingArguments& arguments() const { return arguments_; }
  const TrainerState& state() const { return state_; }  ///< The progress.
  Accelerator& accelerator() { return *accelerator_; }  ///< What prepares and communicates.

  /// Adds a callback behind the others.
  void add_callback(std::shared_ptr<TrainerCallback> callback) { callbacks_.add(std::move(callback)); }

  /// The main process writes the model as `model.safetensors`, and `training_args.json`, to `folder`;
  /// default: output_dir. Throws Error{usage} while an evaluation has weights in half precision
  /// (bf16_full_eval, fp16_full_eval).
  void save_model(std::filesystem::path folder = {});
  /// The main process writes `trainer_state.json` to output_dir.
  void save_state();
  /// The main process writes `<split>_results.json` to output_dir.
  void save_metrics(const std::string& split, const Metrics& metrics);

 protected:
  TrainerBase(const TrainingArguments& arguments, TrainerOptions options);

  /// Creates the optimizer, unless TrainerOptions has one. Override it for another one.
  virtual std::shared_ptr<torch::optim::Optimizer> create_optimizer();
  /// Creates the schedule of the learning rate, unless TrainerOptions has one. Override it for another one.
  virtual Schedule create_schedule(std::int64_t num_training_steps);
  /// Adds the epoch to the entry, appends it to the state's log_history, and passes it to callbacks and
  /// trackers.
  virtual void log(Metrics entry);

  /// Throws Error{usage} if the arguments smooth labels, for a model that computes its own loss.
  void require_no_label_smoothing() const;

  /// Is called with the result of compute_loss for a batch, the number of samples in it, and its first
  /// tensor.
  using EachBatch = std::function<void(const LossOutput&, std::int64_t rows, const at::Tensor& inputs)>;

  /// A pass over an evaluation set.
  struct EvaluationPass {
    std::size_t num_examples = 0;                 ///< The number of samples.
    std::optional<std::size_t> num_batches = {};  ///< Absent if not known.
    /// Runs the pass.
    std::function<void(const EachBatch& each)> for_each = {};
  };

  /// Runs the pass and returns its metrics and, if `wants_predictions`, all predictions.
  PredictionOutput run_evaluation(const EvaluationPass& pass, const char* title, const std::string& prefix,
                                  bool wants_predictions);

  // The parts that depend on the types; Trainer implements them.

  virtual torch::nn::Module& module() = 0;
  virtual void save_weights(const std::filesystem::path& folder) = 0;
  virtual void load_weights(const std::filesystem::path& folder) = 0;
  /// Prepares model and loaders for training.
  virtual void prepare_training() = 0;
  virtual std::size_t num_train_examples() const = 0;
  /// The number of batches of this process in an epoch; absent if the size of the data is not known.
  virtual std::optional<std::size_t> train_batches() const = 0;
  /// Where the next pass over the training data begins.
  virtual LoaderPosition train_position() const = 0;
  /// Starts the pass of this epoch, or if `resumed`, continues it after the loaded checkpoint.
  virtual void begin_epoch(std::uint64_t epoch, bool resumed) = 0;
  /// Reads up to `count` batches of the pass; returns how many there were.
  virtual std::size_t read_batches(std::size_t count) = 0;
  /// The first tensor of one of the batches that were read.
  virtual at::Tensor inputs_of(std::size_t batch) = 0;
  /// Runs forward and backward on one of the batches that were read; averages gradients only if
  /// `synchronize`. Returns the loss, divided by `batches_in_step`.
  virtual at::Tensor train_on(std::size_t batch, std::size_t batches_in_step, bool synchronize) = 0;
  /// The rest of the pass is not read, nor after a checkpoint that is saved from now on.
  virtual void skip_rest_of_epoch() = 0;
  virtual void end_epoch() = 0;
  /// The names of the evaluation sets; the only one may have none.
  virtual std::vector<std::string> eval_names() const = 0;
  virtual EvaluationPass evaluation_pass(const std::string& name) = 0;

  bool is_training() const { return is_training_; }

  /// The type of the weights in an evaluation that begins now, if it is not their own: see
  /// TrainingArguments::bf16_full_eval.
  std::optional<at::ScalarType> evaluation_type() const;

  /// While it exists, this Trainer's save_model and its Accelerator's save_state and load_state throw
  /// Error{usage}: the model has weights that are not its own. The Accelerator's save_model and
  /// get_state_dict, and another Trainer's save_model, do not know of it, and give those weights.
  class SaveRefusal {
   public:
    explicit SaveRefusal(TrainerBase& trainer);
    ~SaveRefusal();
    SaveRefusal(const SaveRefusal&) = delete;
    SaveRefusal& operator=(const SaveRefusal&) = delete;

    /// Throws its Error{usage}. `action` is "save" or "load".
    [[noreturn]] static void refuse(const char* function, const char* action);

   private:
    TrainerBase& trainer_;
    HookHandle save_hook_;
    HookHandle load_hook_;
    // An evaluation may begin within another one, in a callback.
    bool refused_before_;
  };

  /// To be called after the forward pass of a training step, see TrainingArguments::torch_empty_cache_steps.
  void free_unused_memory() const;

 private:
  struct Counters;

  // What train does, once.
  TrainOutput train_once(const std::string& resume_from_checkpoint);
  void require_possible() const;
  // Changes the plan to that of the loaded checkpoint, or if its steps were of another size, to what is left
  // of the data or of max_steps.
  void continue_with(detail::TrainingPlan& plan, const LoaderPosition& from);
  void show_banner(const detail::TrainingPlan& plan);
  bool shows_progress() const;
  void create_scheduler(Optimizer& optimizer, std::int64_t max_steps);
  template <class MetricScheduler>
  void follow_metric(std::shared_ptr<MetricScheduler> scheduler);
  // What the training had saved before it goes on is its own.
  void add_saved_checkpoints();
  // Calls `load`, which returns whether it has loaded a checkpoint.
  bool resume(const std::function<bool()>& load);
  // Throws Error{config} on all processes unless all find one of the same step, or all none.
  std::filesystem::path checkpoint_to_resume(const std::string& choice) const;
  // From the checkpoint that `choice` names, see train; false: from the start.
  bool resume_from(const std::string& choice);
  void set_intervals(const detail::TrainingPlan& plan);
  // Trains an epoch from the position on.
  void train_epoch(const detail::TrainingPlan& plan, Counters& counters, const LoaderPosition& from);
  // Of a batch that was read, see TrainingArguments::include_num_input_tokens_seen.
  void count_input_tokens(std::size_t batch);
  std::int64_t num_tokens(const at::Tensor& inputs) const;
  void require_as_many_batches(const EvaluationPass& pass) const;
  detail::KeptResults kept_results(bool wants_predictions) const;
  void step_optimizer(Counters& counters);
  void clear_gradients();
  void log_save_evaluate(Counters& counters);
  void stop_if_asked();
  Metrics evaluate_in_training();
  void use_metrics(const Metrics& metrics);
  void note_saved(std::int64_t step);
  void save_checkpoint();
  void save_in_memory();
  // What a checkpoint has besides the state of the Accelerator.
  std::function<void(const std::filesystem::path& folder)> state_writer(bool writes);
  TrainOutput finish(const detail::TrainingPlan& plan, Counters& counters);
  void load_best_model();
  void fire(void (TrainerCallback::*event)(const TrainingArguments&, TrainerState&, TrainerControl&));

  TrainingArguments arguments_;
  TrainerOptions options_;
  std::unique_ptr<detail::MemoryTracker> memory_;
  std::unique_ptr<Accelerator> accelerator_;
  TrainerState state_ = {};
  TrainerControl control_ = {};
  detail::CallbackHandler callbacks_ = {};
  detail::TrainerCheckpoints checkpoints_;
  std::shared_ptr<detail::TrainingRecord> training_record_;
  std::optional<Optimizer> optimizer_ = {};
  // Null for a schedule that follows a metric.
  std::shared_ptr<Scheduler> scheduler_ = {};
  // Empty for other schedules.
  std::function<void(double metric)> step_by_metric_ = {};
  std::function<double()> learning_rate_ = {};
  // 0: none are saved.
  std::int64_t memory_save_steps_ = 0;
  bool is_training_ = false;
  bool refuses_saves_ = false;
  // The training was asked to end, and is over before its last step.
  bool stopped_ = false;
  // The optimizer of the last training, and its rates before its first schedule.
  std::shared_ptr<torch::optim::Optimizer> native_ = {};
  std::vector<double> initial_rates_ = {};
};

}  // namespace acc
