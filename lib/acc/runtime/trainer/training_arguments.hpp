// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc {

/// When something is done: never, every so many steps, or after each epoch.
enum class IntervalStrategy { no, steps, epoch };

/// When checkpoints are saved; `best`: after each evaluation with a better metric than all before.
enum class SaveStrategy { no, steps, epoch, best };

/// The schedules of the learning rate, by the names of transformers.
enum class SchedulerType {
  linear,
  cosine,
  cosine_with_restarts,
  polynomial,
  constant,
  constant_with_warmup,
  inverse_sqrt,
  reduce_lr_on_plateau,
};

/// The optimizers, by the names of transformers.
enum class OptimizerName { adamw_torch, sgd, adagrad, rmsprop };

/// The arguments of a Trainer, with the names and defaults of transformers 5.23's TrainingArguments. Numbers
/// of steps are steps of the optimizer.
struct TrainingArguments {
  /// The folder for checkpoints and logs; created when the first one is written.
  std::filesystem::path output_dir = "trainer_output";

  /// For programs that choose by flags what to do; a Trainer ignores them.
  bool do_train = false;
  bool do_eval = false;     ///< See do_train.
  bool do_predict = false;  ///< See do_train.

  int per_device_train_batch_size = 8;  ///< Samples in a batch of one process.
  int per_device_eval_batch_size = 8;   ///< Samples in a batch of an evaluation.
  /// The number of batches of a process for one step of the optimizer.
  int gradient_accumulation_steps = 1;
  /// May have a fraction: training then ends within an epoch.
  double num_train_epochs = 3;
  /// The number of training steps, which overrides num_train_epochs; negative: not set.
  std::int64_t max_steps = -1;

  OptimizerName optim = OptimizerName::adamw_torch;  ///< The optimizer.
  /// More options of the optimizer as `name=value` pairs, separated by commas: `momentum=0.9`.
  std::string optim_args = {};
  double learning_rate = 5e-5;  ///< The highest rate of the schedule.
  /// Not applied to biases and normalization layers.
  double weight_decay = 0;
  double adam_beta1 = 0.9;     ///< AdamW's first beta.
  double adam_beta2 = 0.999;   ///< AdamW's second beta.
  double adam_epsilon = 1e-8;  ///< AdamW's epsilon.
  /// Gradients are clipped to this norm; 0: no clipping.
  double max_grad_norm = 1;
  SchedulerType lr_scheduler_type = SchedulerType::linear;  ///< The schedule of the learning rate.
  /// More options of the schedule: `num_cycles` (cosine, cosine_with_restarts), `lr_end`, `power`
  /// (polynomial), `timescale` (inverse_sqrt), `factor`, `patience`, `threshold`, `cooldown`, `min_lr`
  /// (reduce_lr_on_plateau).
  std::map<std::string, double> lr_scheduler_kwargs = {};
  /// The number of steps in which the learning rate rises from 0; less than 1: a fraction of all steps.
  double warmup_steps = 0;
  /// Label smoothing of the default loss.
  double label_smoothing_factor = 0;

  bool bf16 = false;     ///< Computes in bf16.
  bool fp16 = false;     ///< Computes in fp16.
  bool use_cpu = false;  ///< Uses the CPU even if there are other devices.
  /// Calls the module's gradient_checkpointing_enable(), which it must have.
  bool gradient_checkpointing = false;
  std::uint64_t seed = 42;  ///< Set at the beginning of the training.
  /// The seed for the order of samples. Default: `seed`.
  std::optional<std::uint64_t> data_seed = {};
  /// Uses only algorithms that give the same result each time.
  bool full_determinism = false;

  bool dataloader_drop_last = false;  ///< See DataLoaderOptions.
  int dataloader_num_workers = 0;     ///< See DataLoaderOptions.
  bool dataloader_pin_memory = true;  ///< See DataLoaderOptions.
  /// The number of batches that each worker reads ahead. Default: 2.
  std::optional<int> dataloader_prefetch_factor = {};
  /// Accepted without effect: acc's data sets have no named columns.
  bool remove_unused_columns = true;

  IntervalStrategy logging_strategy = IntervalStrategy::steps;  ///< When to log the loss.
  /// Steps between logs; less than 1: a fraction of all steps. The same holds for eval_steps and save_steps.
  double logging_steps = 500;
  bool logging_first_step = false;  ///< Logs the first step, too.
  /// In logs, replaces a loss that is not finite by the mean of those before it.
  bool logging_nan_inf_filter = true;
  /// The names of trackers, as in AcceleratorOptions::log_with; `none` is ignored.
  std::vector<std::string> report_to = {};
  /// Default: `runs` in output_dir.
  std::filesystem::path logging_dir = {};
  /// The name of this training for trackers.
  std::string run_name = {};
  /// Shows neither a progress bar nor a table. Default: false.
  std::optional<bool> disable_tqdm = {};

  IntervalStrategy eval_strategy = IntervalStrategy::no;  ///< When to evaluate.
  /// Default: logging_steps.
  std::optional<double> eval_steps = {};
  /// The number of epochs, or of steps if eval_strategy is steps, before the first evaluation.
  double eval_delay = 0;
  bool eval_on_start = false;  ///< Evaluates before the first step.
  /// Evaluation does not gather predictions, and so reports no metrics but the loss.
  bool prediction_loss_only = false;

  SaveStrategy save_strategy = SaveStrategy::steps;  ///< When to save a checkpoint.
  double save_steps = 500;                           ///< Steps between checkpoints.
  /// Steps between states in memory, see Accelerator::save_state(InMemory), or a fraction; 0: there are none.
  double memory_save_steps = 0;
  /// The maximum number of checkpoints that are kept; the best one is always kept.
  std::optional<int> save_total_limit = {};
  /// Checkpoints contain only the model: training cannot be resumed from them.
  bool save_only_model = false;
  /// Trains on while a checkpoint is written, see SaveStateOptions::background.
  bool save_in_background = false;
  bool save_on_each_node = false;  ///< The first process of each machine writes the shared files.
  /// On SIGTERM, SIGUSR1 or SIGUSR2, see Accelerator::should_stop, saves a checkpoint after the current step,
  /// whatever save_strategy is, and ends the training without more evaluations. The engine must leave time
  /// for a step and a checkpoint.
  bool enable_jit_checkpoint = false;
  bool load_best_model_at_end = false;  ///< Loads the checkpoint with the best metric.
  /// The metric that determines the best model. Default if the best model is needed: loss.
  std::string metric_for_best_model = {};
  /// Whether a greater metric is better. Default: unless its name ends with loss.
  std::optional<bool> greater_is_better = {};
  /// The folder of a checkpoint, or `true` or `last` for the newest one in output_dir; with `last` there may
  /// be none.
  std::string resume_from_checkpoint = {};
  /// Resumes at the start of the epoch instead of within it.
  bool ignore_data_skip = false;

  std::optional<bool> ddp_find_unused_parameters = {};  ///< See DdpOptions.
  std::optional<int> ddp_bucket_cap_mb = {};            ///< See DdpOptions.
  std::optional<bool> ddp_broadcast_buffers = {};       ///< See DdpOptions.
  std::optional<bool> ddp_static_graph = {};            ///< See DdpOptions.
  /// Seconds.
  int ddp_timeout = 1800;

  bool operator==(const TrainingArguments&) const = default;
};

/// Returns the arguments with defaults that depend on other arguments filled in. Throws Error{usage}, naming
/// the argument, for invalid values and for arguments that exclude each other.
TrainingArguments completed(TrainingArguments arguments);

/// Returns `defaults` changed by flags: `--learning_rate 1e-3`, or with dashes, `--bf16`, `--bf16 false`. A
/// single argument that ends in `.json` is read as by read_training_arguments. Words that are not training
/// arguments, `--help` included, are returned in `rest` in order; if `rest` is null they are an Error{usage}.
TrainingArguments parse_training_arguments(int argc, const char* const* argv,
                                           const TrainingArguments& defaults = {},
                                           std::vector<std::string>* rest = nullptr);

/// The text of all flags with their defaults, for a program's `--help`.
std::string training_arguments_help(const TrainingArguments& defaults = {});

/// Returns `defaults` changed by a JSON object in a file. Throws Error{config} with the file and the key for
/// unknown arguments and invalid values, Error{system} when the file cannot be read.
TrainingArguments read_training_arguments(const std::filesystem::path& file,
                                          const TrainingArguments& defaults = {});

/// Writes all arguments as a JSON object that read_training_arguments can read.
std::string to_json(const TrainingArguments& arguments);

}  // namespace acc
