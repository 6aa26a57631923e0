// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "acc/runtime/accelerator/accelerator_options.hpp"

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
  cosine_with_min_lr,
  cosine_warmup_with_min_lr,
  warmup_stable_decay,
  greedy,
};

/// The optimizers, by the names of transformers.
enum class OptimizerName { adamw_torch, sgd, adagrad, rmsprop, adafactor };

/// In which order the training data is read.
enum class SamplingStrategy { random, sequential, group_by_length };

/// Which tokens of the input are counted.
enum class TokenCount { no, all, non_padding };

/// A number or a word, as the options of a schedule are.
struct NumberOrWord {
  NumberOrWord() = default;
  template <class Number>
    requires std::is_arithmetic_v<Number>
  NumberOrWord(Number number) : value(static_cast<double>(number)) {}  // NOLINT: implicit
  NumberOrWord(std::string word) : value(std::move(word)) {}           // NOLINT: implicit
  NumberOrWord(const char* word) : NumberOrWord(std::string(word)) {}  // NOLINT: implicit
  bool operator==(const NumberOrWord&) const = default;

  std::variant<double, std::string> value = 0.0;  ///< Which of both it is.
};

/// The details of gradient accumulation in transformers' AcceleratorConfig.
struct GradientAccumulationKwargs {
  /// Used as gradient_accumulation_steps, which must then be 1.
  std::optional<int> num_steps = {};
  bool sync_each_batch = false;  ///< See GradientAccumulationOptions.
  bool operator==(const GradientAccumulationKwargs&) const = default;
};

/// transformers' AcceleratorConfig: what the Trainer's Accelerator does with loaders and steps.
struct AcceleratorConfig {
  bool split_batches = false;                                    ///< See AcceleratorOptions.
  std::optional<bool> dispatch_batches = {};                     ///< See AcceleratorOptions.
  bool even_batches = true;                                      ///< See AcceleratorOptions.
  GradientAccumulationKwargs gradient_accumulation_kwargs = {};  ///< Details of gradient accumulation.
  bool operator==(const AcceleratorConfig&) const = default;
};

/// How modules of a sharded model are chosen whose parameters are gathered together.
enum class WrapPolicy { transformer_based, size_based, none };

/// transformers' fsdp_config, of version 2; see FsdpOptions.
struct FsdpConfig {
  bool reshard_after_forward = true;                            ///< See FsdpOptions.
  StateDictType state_dict_type = StateDictType::full;          ///< See FsdpOptions.
  WrapPolicy auto_wrap_policy = WrapPolicy::transformer_based;  ///< Which of the next two is used.
  std::vector<std::string> transformer_layer_cls_to_wrap = {};  ///< FsdpOptions::transformer_cls_to_wrap.
  std::int64_t min_num_params = 0;                              ///< See FsdpOptions.
  bool operator==(const FsdpConfig&) const = default;
};

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
  /// Begins again with nine tenths of per_device_train_batch_size when memory runs out. For a process alone.
  bool auto_find_batch_size = false;
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
  /// More options of the schedule: `num_cycles` (all of cosines), `lr_end`, `power` (polynomial), `timescale`
  /// (inverse_sqrt), `factor`, `patience`, `threshold`, `cooldown`, `min_lr` (reduce_lr_on_plateau), `min_lr`
  /// or `min_lr_rate`, of which one is needed (cosine_with_min_lr, cosine_warmup_with_min_lr),
  /// `warmup_lr_rate` (cosine_warmup_with_min_lr), `num_decay_steps`, which is needed, `num_stable_steps`,
  /// `min_lr_ratio`, `warmup_type`, `decay_type`: linear, cosine, 1-sqrt (warmup_stable_decay), the fields of
  /// GreedyOptions (greedy).
  std::map<std::string, NumberOrWord> lr_scheduler_kwargs = {};
  /// The number of steps in which the learning rate rises from 0; less than 1: a fraction of all steps.
  double warmup_steps = 0;
  /// Label smoothing of the default loss.
  double label_smoothing_factor = 0;

  bool bf16 = false;  ///< Computes in bf16.
  bool fp16 = false;  ///< Computes in fp16.
  /// evaluate() and predict() outside of a training compute with weights, buffers and inputs in bf16; after
  /// them the model has its own weights again. For models that are neither sharded nor compiled.
  bool bf16_full_eval = false;
  bool fp16_full_eval = false;  ///< The same in fp16.
  bool use_cpu = false;         ///< Uses the CPU even if there are other devices.
  /// Whether CUDA devices compute products of float tensors in TF32. Default: LibTorch's.
  std::optional<bool> tf32 = {};
  /// Computes activations again in backward, as AcceleratorOptions::activation_checkpointing.
  bool activation_checkpointing = false;
  bool gradient_checkpointing = false;  ///< The former name of activation_checkpointing; either is enough.
  /// Returns unused memory of the device to the driver after the forward pass of every so many steps.
  std::optional<int> torch_empty_cache_steps = {};
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
  /// The order of the training data; an iterable data set has its own. group_by_length needs SizedSamples.
  SamplingStrategy train_sampling_strategy = SamplingStrategy::random;
  /// Accepted without effect: acc's data sets have no named columns.
  bool remove_unused_columns = true;

  IntervalStrategy logging_strategy = IntervalStrategy::steps;  ///< When to log the loss.
  /// Steps between logs; less than 1: a fraction of all steps. The same holds for eval_steps and save_steps.
  double logging_steps = 500;
  bool logging_first_step = false;  ///< Logs the first step, too.
  /// In logs, replaces a loss that is not finite by the mean of those before it.
  bool logging_nan_inf_filter = true;
  /// Logs the number of elements in the first tensor of all training batches, of all processes; non_padding:
  /// without those that are TrainerOptions::pad_token_id.
  TokenCount include_num_input_tokens_seen = TokenCount::no;
  /// Without it the metrics of train(), evaluate() and predict() also say what these did to the memory of
  /// this process and its CUDA device, in bytes. The kernel's peak of the process begins anew with each.
  bool skip_memory_metrics = true;
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

  /// Metrics are computed for each batch, by TrainerOptions::compute_batch_metrics.
  bool batch_eval_metrics = false;
  /// Whether EvalPrediction has all rows in one tensor, or else each batch on its own.
  bool eval_do_concat_batches = true;
  /// What EvalPrediction also has: `inputs`, `loss`.
  std::vector<std::string> include_for_metrics = {};

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

  AcceleratorConfig accelerator_config = {};  ///< More options of the Trainer's Accelerator.
  /// Shards the model. So does a launcher's --use_fsdp, whatever this says, as in transformers.
  std::optional<bool> fsdp = {};
  FsdpConfig fsdp_config = {};  ///< How, if fsdp is true.
  /// The backend for tensors on CUDA devices. Default: nccl.
  std::optional<CudaBackend> ddp_backend = {};
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
