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

#include "acc/runtime/accelerator.hpp"
#include "acc/runtime/trainer/trainer_callback.hpp"
#include "acc/runtime/trainer/trainer_state.hpp"
#include "acc/runtime/trainer/training_arguments.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace acc {

/// What a forward pass on a batch gives: Trainer::compute_loss.
struct LossOutput {
  /// One number; undefined when a batch without labels is predicted.
  at::Tensor loss = {};
  /// What the model predicts, a row for each sample; may be undefined.
  at::Tensor logits = {};
  /// What is right, a row for each sample; may be undefined.
  at::Tensor labels = {};
};

/// All predictions of a data set and its labels, in its order.
struct EvalPrediction {
  at::Tensor predictions = {};
  at::Tensor label_ids = {};
};

/// Computes metrics from all predictions; `eval_` is put before their names.
using ComputeMetrics = std::function<Metrics(const EvalPrediction&)>;

/// What Trainer::train gives back.
struct TrainOutput {
  std::int64_t global_step = 0;
  /// The mean over the steps of this call.
  double training_loss = 0;
  /// `train_runtime` (seconds), `train_samples_per_second`, `train_steps_per_second`, `train_loss`, `epoch`.
  Metrics metrics = {};
};

/// What Trainer::predict gives back.
struct PredictionOutput {
  at::Tensor predictions = {};
  at::Tensor label_ids = {};
  /// As evaluate's, with `test_` before their names.
  Metrics metrics = {};
};

/// What a Trainer may be given besides a model, arguments and data.
struct TrainerOptions {
  ComputeMetrics compute_metrics = {};
  std::vector<std::shared_ptr<TrainerCallback>> callbacks = {};
  /// Instead of the one that `optim` names.
  std::shared_ptr<torch::optim::Optimizer> optimizer = {};
  /// Instead of the one that `lr_scheduler_type` names.
  std::optional<Schedule> schedule = {};
};

/// The loss that a Trainer computes by itself: cross entropy for labels that are whole numbers (logits
/// `[N, C]` with labels `[N]`, or `[N, T, C]` with `[N, T]`; the label -100 is left out), mean squared error
/// for all others. Throws Error{usage} for other shapes.
at::Tensor default_loss(const at::Tensor& logits, const at::Tensor& labels, double label_smoothing = 0);

/// What of a Trainer does not depend on the types of model and data. All functions but those that only tell
/// something are called by all processes together.
class TrainerBase {
 public:
  virtual ~TrainerBase();
  TrainerBase(const TrainerBase&) = delete;
  TrainerBase& operator=(const TrainerBase&) = delete;

  /// Trains as the arguments say, or goes on from a checkpoint: the argument's, or `resume_from_checkpoint`,
  /// a folder or `last`. A training that was killed and goes on ends with the same weights. Throws
  /// Error{usage} for arguments that do not fit, Error{config} for a checkpoint of something else, and what
  /// the data, the model and callbacks throw.
  TrainOutput train(const std::string& resume_from_checkpoint = {});

  /// Evaluates on the evaluation data: `eval_loss`, what compute_metrics gives, `eval_runtime` (seconds),
  /// `eval_samples_per_second`, `eval_steps_per_second`, `epoch`. Throws Error{usage} without such data.
  virtual Metrics evaluate();

  const TrainingArguments& arguments() const { return arguments_; }
  const TrainerState& state() const { return state_; }
  Accelerator& accelerator() { return *accelerator_; }

  void add_callback(std::shared_ptr<TrainerCallback> callback) { callbacks_.add(std::move(callback)); }

  /// The main process writes the model, `model.safetensors`, and `training_args.json` to a folder; default:
  /// output_dir.
  void save_model(std::filesystem::path folder = {});
  /// The main process writes `trainer_state.json` to output_dir.
  void save_state();
  /// The main process writes `<split>_results.json` to output_dir.
  void save_metrics(const std::string& split, const Metrics& metrics);

 protected:
  TrainerBase(const TrainingArguments& arguments, TrainerOptions options);

  /// The optimizer of a training that was given none. Override it for another.
  virtual std::shared_ptr<torch::optim::Optimizer> create_optimizer();
  /// How the learning rate goes. Override it for another.
  virtual Schedule create_schedule(std::int64_t num_training_steps);
  /// Adds the epoch, keeps the entry in the state's history and hands it to callbacks and trackers.
  virtual void log(Metrics entry);

  /// A pass over an evaluation set: calls `each` for each batch with what compute_loss gave and the batch's
  /// number of samples.
  struct EvaluationPass {
    std::size_t num_examples = 0;
    std::optional<std::size_t> num_batches = {};
    std::function<void(const std::function<void(const LossOutput&, std::int64_t rows)>& each)> for_each = {};
  };

  /// Runs it and gives its metrics and, where they are wanted, all predictions.
  PredictionOutput run_evaluation(const EvaluationPass& pass, const char* title, const std::string& prefix,
                                  bool wants_predictions);

  // What depends on the types, for Trainer to implement.

  virtual torch::nn::Module& module() = 0;
  virtual void save_weights(const std::filesystem::path& folder) = 0;
  virtual void load_weights(const std::filesystem::path& folder) = 0;
  /// Makes model and loaders ready.
  virtual void prepare_training() = 0;
  virtual std::size_t num_train_examples() const = 0;
  /// Absent for data that does not know its size.
  virtual std::optional<std::size_t> train_batches() const = 0;
  /// Starts the pass of this epoch, or where a loaded checkpoint was in it.
  virtual void begin_epoch(std::uint64_t epoch, bool resumed) = 0;
  /// Reads up to that many batches of the pass; gives back how many there were.
  virtual std::size_t read_batches(std::size_t count) = 0;
  /// Forward and backward on one of them, without averaging gradients unless `synchronize`. Gives back the
  /// loss, divided by `batches_in_step`.
  virtual at::Tensor train_on(std::size_t batch, std::size_t batches_in_step, bool synchronize) = 0;
  virtual void end_epoch() = 0;
  virtual bool has_eval_data() const = 0;
  virtual EvaluationPass evaluation_pass() = 0;
  virtual void enable_gradient_checkpointing() = 0;

  bool is_training() const { return is_training_; }

 private:
  struct Plan;
  struct Running;

  Plan plan_training() const;
  void show_banner(const Plan& plan);
  bool shows_progress() const;
  void create_scheduler(Optimizer& optimizer, std::int64_t max_steps);
  void train_epoch(const Plan& plan, Running& running, std::uint64_t epoch, bool resumed);
  void step_optimizer(Running& running);
  void log_save_evaluate(Running& running);
  void evaluate_in_training();
  std::filesystem::path checkpoint_folder(std::int64_t step) const;
  void save_checkpoint();
  std::filesystem::path checkpoint_to_resume(const std::string& wanted) const;
  void resume(const std::filesystem::path& checkpoint);
  TrainOutput finish(const Plan& plan, Running& running);
  void fire(void (TrainerCallback::*event)(const TrainingArguments&, TrainerState&, TrainerControl&));

  TrainingArguments arguments_;
  TrainerOptions options_;
  std::unique_ptr<Accelerator> accelerator_;
  TrainerState state_ = {};
  TrainerControl control_ = {};
  detail::CallbackHandler callbacks_ = {};
  std::optional<Optimizer> optimizer_ = {};
  // One of them, as lr_scheduler_type says.
  std::shared_ptr<Scheduler> scheduler_ = {};
  std::shared_ptr<ReduceOnPlateau> plateau_ = {};
  bool is_training_ = false;
};

}  // namespace acc
