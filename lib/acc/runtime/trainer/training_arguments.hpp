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

enum class IntervalStrategy { no, steps, epoch };

/// When checkpoints are saved; `best`: whenever an evaluation gave a better metric than all before.
enum class SaveStrategy { no, steps, epoch, best };

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

enum class OptimizerName { adamw_torch, sgd, adagrad, rmsprop };

/// What a Trainer is asked for: the names and defaults of transformers 5.23's TrainingArguments. Numbers of
/// steps count steps of the optimizer.
struct TrainingArguments {
  /// Checkpoints and logs are written here; made when the first is.
  std::filesystem::path output_dir = "trainer_output";

  /// For programs that decide by flags what they do; a Trainer does not look at them.
  bool do_train = false;
  bool do_eval = false;
  bool do_predict = false;

  int per_device_train_batch_size = 8;
  int per_device_eval_batch_size = 8;
  /// Batches of a process to one step of the optimizer.
  int gradient_accumulation_steps = 1;
  /// May be a fraction: training then ends within an epoch.
  double num_train_epochs = 3;
  /// Ends training after that many steps, whatever num_train_epochs says; negative: no limit.
  std::int64_t max_steps = -1;

  OptimizerName optim = OptimizerName::adamw_torch;
  /// `name=value` pairs with commas, for what has no argument of its own: `momentum=0.9`.
  std::string optim_args = {};
  double learning_rate = 5e-5;
  /// Not applied to biases and normalization layers.
  double weight_decay = 0;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  /// Gradients are scaled down to this norm; 0: never.
  double max_grad_norm = 1;
  SchedulerType lr_scheduler_type = SchedulerType::linear;
  /// What a schedule takes besides: `num_cycles` (cosine, cosine_with_restarts), `lr_end`, `power`
  /// (polynomial), `timescale` (inverse_sqrt), `factor`, `patience`, `threshold`, `cooldown`, `min_lr`
  /// (reduce_lr_on_plateau).
  std::map<std::string, double> lr_scheduler_kwargs = {};
  /// Steps in which the learning rate rises from 0; less than 1: that part of all steps.
  double warmup_steps = 0;
  /// For the loss that a Trainer computes by itself.
  double label_smoothing_factor = 0;

  bool bf16 = false;
  bool fp16 = false;
  bool use_cpu = false;
  /// Calls the module's gradient_checkpointing_enable(), which it must have.
  bool gradient_checkpointing = false;
  std::uint64_t seed = 42;
  /// Of the order of samples. Default: `seed`.
  std::optional<std::uint64_t> data_seed = {};
  /// Only algorithms that give the same result each time.
  bool full_determinism = false;

  bool dataloader_drop_last = false;
  int dataloader_num_workers = 0;
  bool dataloader_pin_memory = true;
  /// Batches that each worker reads ahead. Default: 2.
  std::optional<int> dataloader_prefetch_factor = {};
  /// Accepted without effect: data sets have no named columns here.
  bool remove_unused_columns = true;

  IntervalStrategy logging_strategy = IntervalStrategy::steps;
  /// Less than 1: that part of all steps; so are the next two.
  double logging_steps = 500;
  bool logging_first_step = false;
  /// A loss that is not finite counts as the mean of those before it.
  bool logging_nan_inf_filter = true;
  /// Trackers, as AcceleratorOptions::log_with names them; `none` is none.
  std::vector<std::string> report_to = {};
  /// Default: `runs` in output_dir.
  std::filesystem::path logging_dir = {};
  /// What trackers call this training.
  std::string run_name = {};
  /// Neither a progress bar nor a table. Default: shown.
  std::optional<bool> disable_tqdm = {};

  IntervalStrategy eval_strategy = IntervalStrategy::no;
  /// Default: logging_steps.
  std::optional<double> eval_steps = {};
  /// Epochs, or steps where eval_strategy is steps, before the first evaluation.
  double eval_delay = 0;
  bool eval_on_start = false;
  /// Evaluation gathers no predictions, and so computes no metrics but the loss.
  bool prediction_loss_only = false;

  SaveStrategy save_strategy = SaveStrategy::steps;
  double save_steps = 500;
  /// At most that many checkpoints stay; the best one always does.
  std::optional<int> save_total_limit = {};
  /// Checkpoints hold the model alone: training cannot go on from them.
  bool save_only_model = false;
  bool save_on_each_node = false;
  bool load_best_model_at_end = false;
  /// Default where the best model is asked for: loss.
  std::string metric_for_best_model = {};
  /// Default: unless the metric's name ends with loss.
  std::optional<bool> greater_is_better = {};
  /// A checkpoint's folder, or `true` or `last` for the newest in output_dir.
  std::string resume_from_checkpoint = {};
  /// A resumed training begins its epoch from the start instead of where it was.
  bool ignore_data_skip = false;

  std::optional<bool> ddp_find_unused_parameters = {};
  std::optional<int> ddp_bucket_cap_mb = {};
  std::optional<bool> ddp_broadcast_buffers = {};
  std::optional<bool> ddp_static_graph = {};
  /// Seconds.
  int ddp_timeout = 1800;

  bool operator==(const TrainingArguments&) const = default;
};

/// The arguments with what depends on others filled in. Throws Error{usage}, naming the argument, for values
/// that make no sense and for those that exclude each other.
TrainingArguments completed(TrainingArguments arguments);

/// Changes `defaults` by flags: `--learning_rate 1e-3`, with dashes too, `--bf16`, `--bf16 false`. A single
/// argument that ends in `.json` is a file for read_training_arguments. Flags and words that are not training
/// arguments go to `rest`, in order, `--help` among them; without one they are an Error{usage}.
TrainingArguments parse_training_arguments(int argc, const char* const* argv,
                                           const TrainingArguments& defaults = {},
                                           std::vector<std::string>* rest = nullptr);

/// All flags with their defaults, for a program's `--help`.
std::string training_arguments_help(const TrainingArguments& defaults = {});

/// Changes `defaults` by a JSON object in a file. Throws Error{config} with the file and the key for what is
/// not an argument, or not a value for it, Error{system} when it cannot be read.
TrainingArguments read_training_arguments(const std::filesystem::path& file,
                                          const TrainingArguments& defaults = {});

/// All arguments as a JSON object that read_training_arguments takes.
std::string to_json(const TrainingArguments& arguments);

}  // namespace acc
