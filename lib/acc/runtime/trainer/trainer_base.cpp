// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_base.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <regex>
#include <tuple>
#include <unordered_set>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/folder_replacement.hpp"
#include "acc/runtime/trainer/trainer_progress.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kCheckpointPrefix = "checkpoint-";
constexpr const char* kStateFile = "trainer_state.json";
constexpr const char* kArgumentsFile = "training_args.json";
// The padding value of labels and predictions in transformers; cross entropy ignores such labels.
constexpr std::int64_t kPadding = -100;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

// Adds the metrics of transformers' speed_metrics.
void add_speed(Metrics& metrics, const std::string& prefix, double seconds, double samples, double steps) {
  metrics[prefix + "_runtime"] = rounded(seconds, 4);
  if (seconds <= 0) return;
  metrics[prefix + "_samples_per_second"] = rounded(samples / seconds, 3);
  metrics[prefix + "_steps_per_second"] = rounded(steps / seconds, 3);
}

AcceleratorOptions accelerator_options(const TrainingArguments& arguments) {
  AcceleratorOptions options;
  if (arguments.bf16) options.mixed_precision = MixedPrecision::bf16;
  if (arguments.fp16) options.mixed_precision = MixedPrecision::fp16;
  options.cpu = arguments.use_cpu;
  options.step_scheduler_with_optimizer = false;
  options.project_dir = arguments.output_dir;
  options.project.logging_dir = arguments.logging_dir;
  options.project.save_on_each_node = arguments.save_on_each_node;
  for (const std::string& tracker : arguments.report_to) options.log_with.emplace_back(tracker);
  options.process_group.timeout = std::chrono::seconds(arguments.ddp_timeout);
  if (arguments.ddp_find_unused_parameters)
    options.ddp.find_unused_parameters = *arguments.ddp_find_unused_parameters;
  if (arguments.ddp_bucket_cap_mb) options.ddp.bucket_cap_mb = *arguments.ddp_bucket_cap_mb;
  if (arguments.ddp_broadcast_buffers) options.ddp.broadcast_buffers = *arguments.ddp_broadcast_buffers;
  if (arguments.ddp_static_graph) options.ddp.static_graph = *arguments.ddp_static_graph;
  return options;
}

// The parameters to which weight decay is not applied: those of LayerNorm modules, biases, and those whose
// name contains the name of a norm.
std::unordered_set<const at::TensorImpl*> parameters_without_decay(const torch::nn::Module& module) {
  static const std::regex names(R"(bias|layernorm|rmsnorm|(^|\.)norm($|\.)|_norm($|\.))", std::regex::icase);
  std::unordered_set<const at::TensorImpl*> found;
  for (const auto& part : module.modules()) {
    if (!part->as<torch::nn::LayerNorm>()) continue;
    for (const at::Tensor& parameter : part->parameters(false)) found.insert(parameter.unsafeGetTensorImpl());
  }
  for (const auto& parameter : module.named_parameters())
    if (std::regex_search(parameter.key(), names)) found.insert(parameter.value().unsafeGetTensorImpl());
  return found;
}

// Parses optim_args, such as `momentum=0.9,nesterov=1`.
std::map<std::string, double> optimizer_numbers(const std::string& text) {
  std::map<std::string, double> numbers;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string pair = text.substr(start, end - start);
    const std::size_t equals = pair.find('=');
    double value = 0;
    const char* last = pair.data() + pair.size();
    const auto parsed = equals == std::string::npos
                            ? std::from_chars_result{last, std::errc::invalid_argument}
                            : std::from_chars(pair.data() + equals + 1, last, value);
    if (parsed.ec != std::errc() || parsed.ptr != last)
      throw Error({.what = "'" + pair + "' is not name=number", .where = "optim_args"});
    numbers[pair.substr(0, equals)] = value;
    start = end + 1;
  }
  return numbers;
}

// Named numbers of an argument. Each must be taken; one that is left is an error.
class NamedNumbers {
 public:
  NamedNumbers(std::map<std::string, double> numbers, const char* where)
      : numbers_(std::move(numbers)), where_(where) {}

  double take(const std::string& name, double default_value) {
    const auto node = numbers_.extract(name);
    return node.empty() ? default_value : node.mapped();
  }

  void require_empty() const {
    if (numbers_.empty()) return;
    throw Error({.what = "does not take '" + numbers_.begin()->first + "'", .where = where_});
  }

 private:
  std::map<std::string, double> numbers_;
  const char* where_;
};

std::int64_t warmup_steps(const TrainingArguments& arguments, std::int64_t num_training_steps) {
  const double steps = arguments.warmup_steps;
  return static_cast<std::int64_t>(steps < 1 ? std::ceil(steps * double(num_training_steps)) : steps);
}

std::int64_t interval(double steps, std::int64_t max_steps) {
  return static_cast<std::int64_t>(steps < 1 ? std::ceil(double(max_steps) * steps) : steps);
}

// transformers' get_cosine_with_hard_restarts_schedule_with_warmup and get_inverse_sqrt_schedule.
Schedule cosine_with_restarts(std::int64_t warmup, std::int64_t steps, double cycles) {
  return lambda_lr([=](std::int64_t step) {
    if (step < warmup) return double(step) / double(std::max<std::int64_t>(1, warmup));
    const double progress = double(step - warmup) / double(std::max<std::int64_t>(1, steps - warmup));
    if (progress >= 1) return 0.0;
    return std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * std::fmod(cycles * progress, 1.0))));
  });
}
Schedule inverse_sqrt(std::int64_t warmup, double timescale) {
  return lambda_lr([=](std::int64_t step) {
    if (step < warmup) return double(step) / double(std::max<std::int64_t>(1, warmup));
    return 1 / std::sqrt((double(step) + timescale - double(warmup)) / timescale);
  });
}

// The Trainer checkpoints in `folder`, sorted by step.
std::vector<NumberedCheckpoint> checkpoints_in(const fs::path& folder) {
  std::vector<NumberedCheckpoint> found = list_checkpoints(folder, kCheckpointPrefix);
  std::erase_if(found, [](const NumberedCheckpoint& one) { return !fs::exists(one.folder / kStateFile); });
  return found;
}

std::int64_t ceil_div(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

bool is_same_folder(const fs::path& one, const fs::path& other) {
  std::error_code one_is_missing;
  return fs::equivalent(one, other, one_is_missing);
}

// Removes the oldest checkpoints until `limit` are left, but neither the best one nor the newest. A training
// that went back to an earlier step is newer than the higher steps that it found: those of its own steps,
// `saved`, are the newest, and the others are as old as their files.
void rotate_checkpoints(const fs::path& folder, int limit, const fs::path& best,
                        const std::set<std::int64_t>& saved) {
  std::vector<NumberedCheckpoint> all = checkpoints_in(folder);
  std::ranges::sort(all, {}, [&](const NumberedCheckpoint& one) {
    const bool is_own = saved.contains(one.number);
    std::error_code not_there;
    const auto written =
        is_own ? fs::file_time_type() : fs::last_write_time(one.folder / kStateFile, not_there);
    return std::tuple(is_own, written, one.number);
  });
  auto surplus = static_cast<std::ptrdiff_t>(all.size()) - limit;
  for (std::size_t i = 0; i + 1 < all.size() && surplus > 0; ++i) {
    if (is_same_folder(all[i].folder, best)) continue;
    detail::remove_folder(all[i].folder);
    --surplus;
  }
}

// Concatenates rows. Pads those of different widths, such as predictions of sentences, on the right.
at::Tensor joined(std::vector<at::Tensor> parts) {
  if (parts.empty()) return {};
  const auto has_width = [](const at::Tensor& part) { return part.dim() >= 2; };
  if (std::all_of(parts.begin(), parts.end(), has_width)) {
    std::int64_t width = 0;
    for (const at::Tensor& part : parts) width = std::max(width, part.size(1));
    for (at::Tensor& part : parts) {
      if (part.size(1) == width) continue;
      std::vector<std::int64_t> padding(static_cast<std::size_t>(2 * (part.dim() - 1)), 0);
      padding.back() = width - part.size(1);
      part = at::constant_pad_nd(part, padding, kPadding);
    }
  }
  return at::cat(parts);
}

// Renames metrics for trackers as transformers does: `eval_loss` to `eval/loss`, `loss` to `train/loss`.
TrackedValues tracked(const Metrics& entry) {
  TrackedValues values;
  for (const auto& [name, value] : entry) {
    std::string tracked_name = "train/" + name;
    for (const std::string prefix : {"eval", "test", "train"})
      if (name.starts_with(prefix + "_")) tracked_name = prefix + "/" + name.substr(prefix.size() + 1);
    values.emplace(std::move(tracked_name), TrackedScalar(value));
  }
  return values;
}

TrackedConfig tracked_config(const TrainingArguments& arguments) {
  TrackedConfig config;
  const nlohmann::json all = nlohmann::json::parse(to_json(arguments));
  for (const auto& [name, value] : all.items()) {
    if (value.is_boolean()) config.emplace(name, value.get<bool>());
    if (value.is_number_integer()) config.emplace(name, value.get<std::int64_t>());
    if (value.is_number_float()) config.emplace(name, value.get<double>());
    if (value.is_string()) config.emplace(name, value.get<std::string>());
  }
  return config;
}

}  // namespace

at::Tensor default_loss(const at::Tensor& logits, const at::Tensor& labels, double label_smoothing) {
  const auto refuse = [&] {
    const auto shape = [](const at::Tensor& tensor) {
      std::string text;
      for (const std::int64_t size : tensor.sizes())
        text += (text.empty() ? "" : ", ") + std::to_string(size);
      return "[" + text + "]";
    };
    throw Error({.what = "there is no loss for logits " + shape(logits) + " with labels " + shape(labels),
                 .where = "Trainer",
                 .hint = "override compute_loss"});
  };
  if (at::isFloatingType(labels.scalar_type())) {
    if (logits.sizes() == labels.sizes()) return at::mse_loss(logits, labels);
    // A model with one output returns [N, 1] for labels [N].
    if (logits.dim() == labels.dim() + 1 && logits.size(-1) == 1 &&
        logits.squeeze(-1).sizes() == labels.sizes())
      return at::mse_loss(logits.squeeze(-1), labels);
    refuse();
  }
  const bool fits = logits.dim() == labels.dim() + 1 && (logits.dim() == 2 || logits.dim() == 3) &&
                    logits.sizes().slice(0, labels.dim()) == labels.sizes();
  if (!fits) refuse();
  return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}), labels.reshape({-1}).to(at::kLong), {},
                                at::Reduction::Mean, kPadding, label_smoothing);
}

struct TrainerBase::Plan {
  std::int64_t num_examples = 0;
  std::int64_t num_train_epochs = 0;
  std::int64_t num_update_steps_per_epoch = 0;
  /// The number of batches of this process.
  std::int64_t steps_in_epoch = 0;
  std::int64_t max_steps = 0;
  std::int64_t total_train_batch_size = 0;
  double num_train_samples = 0;
};

// The plan of a training from its start, in checkpoints: the steps of one that was continued may be as many,
// and of another size. Saved as the state of a callback, since transformers refuses a trainer_state.json with
// other fields than its own.
class TrainerBase::PlanRecord : public TrainerCallback {
 public:
  // Of the training that begins; none is loaded.
  void set(const Plan& plan) {
    plan_ = {{"total_train_batch_size", plan.total_train_batch_size},
             {"num_update_steps_per_epoch", plan.num_update_steps_per_epoch},
             {"max_steps", plan.max_steps},
             {"num_train_epochs", plan.num_train_epochs}};
    loaded_.reset();
  }

  // Whether the checkpoint is of a training with the same plan: of transformers' by its numbers of steps and
  // epochs.
  bool is_loaded(const TrainerState& state) const {
    if (loaded_) return *loaded_ == plan_;
    return state.max_steps == plan_.at("max_steps") && state.num_train_epochs == plan_.at("num_train_epochs");
  }

  std::string name() const override { return "acc::Trainer"; }
  std::string state() const override { return plan_.dump(); }
  void load_state(std::string_view json) override { loaded_ = nlohmann::json::parse(json); }

 private:
  nlohmann::json plan_ = {};
  std::optional<nlohmann::json> loaded_ = {};
};

// The counters of one call of train.
struct TrainerBase::Counters {
  at::Tensor loss = {};
  double total_loss = 0;
  std::int64_t step_of_last_log = 0;
  std::int64_t first_step = 0;
  std::optional<at::Tensor> grad_norm = {};
  std::optional<double> learning_rate = {};
  Clock::time_point started = Clock::now();
};

TrainerBase::TrainerBase(const TrainingArguments& arguments, TrainerOptions options)
    : arguments_(completed(arguments)),
      options_(std::move(options)),
      accelerator_(std::make_unique<Accelerator>(accelerator_options(arguments_))),
      plan_record_(std::make_shared<PlanRecord>()) {
  // The Trainer itself counts the batches of a step.
  accelerator_->set_gradient_accumulation_steps(1);
  set_seed(arguments_.seed, {.deterministic = arguments_.full_determinism});
  state_.is_local_process_zero = accelerator_->is_local_main_process();
  state_.is_world_process_zero = accelerator_->is_main_process();
  callbacks_.add(std::make_shared<detail::DefaultFlowCallback>());
  callbacks_.add(plan_record_);
  for (auto& callback : options_.callbacks) callbacks_.add(std::move(callback));
  if (shows_progress())
    callbacks_.add(std::make_shared<detail::ProgressCallback>(::isatty(STDERR_FILENO) == 1));
  fire(&TrainerCallback::on_init_end);
}

TrainerBase::~TrainerBase() = default;

bool TrainerBase::shows_progress() const {
  return accelerator_->is_main_process() && !arguments_.disable_tqdm.value_or(false);
}

void TrainerBase::fire(void (TrainerCallback::*event)(const TrainingArguments&, TrainerState&,
                                                      TrainerControl&)) {
  callbacks_.call(event, arguments_, state_, control_);
}

std::shared_ptr<torch::optim::Optimizer> TrainerBase::create_optimizer() {
  const auto without_decay = parameters_without_decay(module());
  std::vector<at::Tensor> decayed;
  std::vector<at::Tensor> others;
  for (const at::Tensor& parameter : module().parameters()) {
    if (!parameter.requires_grad()) continue;
    (without_decay.contains(parameter.unsafeGetTensorImpl()) ? others : decayed).push_back(parameter);
  }
  NamedNumbers numbers(optimizer_numbers(arguments_.optim_args), "optim_args");
  const auto create = [&]<class Native, class Options>(std::type_identity<Native> /*type*/, Options options) {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    if (!decayed.empty()) {
      auto with_decay = std::make_unique<Options>(options);
      with_decay->weight_decay(arguments_.weight_decay);
      groups.emplace_back(decayed, std::move(with_decay));
    }
    if (!others.empty()) {
      auto without = std::make_unique<Options>(options);
      without->weight_decay(0);
      groups.emplace_back(others, std::move(without));
    }
    numbers.require_empty();
    return std::shared_ptr<torch::optim::Optimizer>(std::make_shared<Native>(std::move(groups), options));
  };
  const double rate = arguments_.learning_rate;
  switch (arguments_.optim) {
    case OptimizerName::adamw_torch:
      return create(std::type_identity<torch::optim::AdamW>(),
                    torch::optim::AdamWOptions(rate)
                        .betas({arguments_.adam_beta1, arguments_.adam_beta2})
                        .eps(arguments_.adam_epsilon));
    case OptimizerName::sgd:
      return create(std::type_identity<torch::optim::SGD>(), torch::optim::SGDOptions(rate)
                                                                 .momentum(numbers.take("momentum", 0))
                                                                 .nesterov(numbers.take("nesterov", 0) != 0));
    case OptimizerName::adagrad:
      return create(std::type_identity<torch::optim::Adagrad>(), torch::optim::AdagradOptions(rate));
    case OptimizerName::rmsprop:
      return create(std::type_identity<torch::optim::RMSprop>(), torch::optim::RMSpropOptions(rate)
                                                                     .momentum(numbers.take("momentum", 0))
                                                                     .alpha(numbers.take("alpha", 0.99)));
  }
  throw Error({.what = "is not an optimizer", .where = "optim"});
}

Schedule TrainerBase::create_schedule(std::int64_t num_training_steps) {
  const std::int64_t warmup = warmup_steps(arguments_, num_training_steps);
  NamedNumbers numbers(arguments_.lr_scheduler_kwargs, "lr_scheduler_kwargs");
  Schedule schedule = [&] {
    switch (arguments_.lr_scheduler_type) {
      case SchedulerType::linear:
        return linear_with_warmup(warmup, num_training_steps);
      case SchedulerType::cosine:
        return cosine_with_warmup(warmup, num_training_steps, numbers.take("num_cycles", 0.5));
      case SchedulerType::cosine_with_restarts:
        return cosine_with_restarts(warmup, num_training_steps, numbers.take("num_cycles", 1));
      case SchedulerType::polynomial: {
        const double end = numbers.take("lr_end", 1e-7);
        return polynomial_with_warmup(warmup, num_training_steps, end, numbers.take("power", 1));
      }
      case SchedulerType::constant_with_warmup:
        return lambda_lr([=](std::int64_t step) {
          return step < warmup ? double(step) / double(std::max<std::int64_t>(1, warmup)) : 1.0;
        });
      case SchedulerType::inverse_sqrt:
        return inverse_sqrt(warmup, numbers.take("timescale", warmup > 0 ? double(warmup) : 10'000));
      case SchedulerType::constant:
      case SchedulerType::reduce_lr_on_plateau:
        break;
    }
    return lambda_lr([](std::int64_t /*step*/) { return 1.0; });
  }();
  numbers.require_empty();
  return schedule;
}

void TrainerBase::create_scheduler(Optimizer& optimizer, std::int64_t max_steps) {
  scheduler_.reset();
  plateau_.reset();
  if (arguments_.lr_scheduler_type == SchedulerType::reduce_lr_on_plateau && !options_.schedule) {
    NamedNumbers numbers(arguments_.lr_scheduler_kwargs, "lr_scheduler_kwargs");
    PlateauOptions options;
    options.mode =
        arguments_.greater_is_better.value_or(false) ? PlateauOptions::Mode::max : PlateauOptions::Mode::min;
    options.factor = numbers.take("factor", options.factor);
    options.patience = static_cast<std::int64_t>(numbers.take("patience", double(options.patience)));
    options.threshold = numbers.take("threshold", options.threshold);
    options.cooldown = static_cast<std::int64_t>(numbers.take("cooldown", double(options.cooldown)));
    options.min_lr = numbers.take("min_lr", options.min_lr);
    numbers.require_empty();
    plateau_ = std::make_shared<ReduceOnPlateau>(optimizer.native(), options);
    accelerator_->prepare_scheduler(plateau_);
    return;
  }
  // PyTorch's schedules begin with the rates that the optimizer had before the first of them.
  auto& groups = optimizer.native().param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i == initial_rates_.size()) initial_rates_.push_back(groups[i].options().get_lr());
    groups[i].options().set_lr(initial_rates_[i]);
  }
  scheduler_ = std::make_shared<Scheduler>(
      optimizer.native(), options_.schedule ? *options_.schedule : create_schedule(max_steps));
  accelerator_->prepare_scheduler(scheduler_);
}

TrainerBase::Plan TrainerBase::plan_training() const {
  const TrainingArguments& a = arguments_;
  Plan plan;
  plan.max_steps = a.max_steps;
  plan.total_train_batch_size = std::int64_t{a.per_device_train_batch_size} * a.gradient_accumulation_steps *
                                accelerator_->num_processes();
  const std::optional<std::size_t> batches = train_batches();
  if (!batches) {
    if (a.max_steps < 0)
      throw Error(
          {.what = "is required, since the size of the training data is not known", .where = "max_steps"});
    plan.num_train_epochs = std::numeric_limits<std::int64_t>::max();
    plan.num_update_steps_per_epoch = a.max_steps;
    plan.steps_in_epoch = a.max_steps * a.gradient_accumulation_steps;
    plan.num_train_samples = double(plan.max_steps * plan.total_train_batch_size);
    plan.num_examples = plan.max_steps * plan.total_train_batch_size;
    return plan;
  }
  if (*batches == 0)
    throw Error({.what = "the training data has no batches",
                 .where = "Trainer",
                 .hint = a.dataloader_drop_last
                             ? "it is smaller than a batch, and dataloader_drop_last is set"
                             : "it is empty"});
  plan.steps_in_epoch = static_cast<std::int64_t>(*batches);
  plan.num_update_steps_per_epoch = ceil_div(plan.steps_in_epoch, a.gradient_accumulation_steps);
  plan.num_examples = static_cast<std::int64_t>(num_train_examples());
  if (a.max_steps > 0) {
    plan.num_train_epochs = ceil_div(plan.max_steps, plan.num_update_steps_per_epoch);
    plan.num_train_samples = double(plan.max_steps * plan.total_train_batch_size);
  } else {
    plan.max_steps =
        static_cast<std::int64_t>(std::ceil(a.num_train_epochs * double(plan.num_update_steps_per_epoch)));
    plan.num_train_epochs = static_cast<std::int64_t>(std::ceil(a.num_train_epochs));
    plan.num_train_samples = double(plan.num_examples) * a.num_train_epochs;
  }
  return plan;
}

void TrainerBase::continue_with(Plan& plan, const LoaderPosition& from) {
  const std::int64_t steps_from_start = plan.max_steps;
  if (plan_record_->is_loaded(state_)) {
    plan.max_steps = state_.max_steps;
    plan.num_train_epochs = state_.num_train_epochs;
  } else if (train_batches()) {
    plan_rest(plan, from);
  }
  if (plan.max_steps != steps_from_start && scheduler_ && !options_.schedule)
    scheduler_->set_schedule(create_schedule(plan.max_steps));
}

void TrainerBase::plan_rest(Plan& plan, const LoaderPosition& from) const {
  const std::int64_t in_step = arguments_.gradient_accumulation_steps;
  const std::int64_t in_epoch = plan.num_update_steps_per_epoch;
  const std::int64_t epoch = static_cast<std::int64_t>(from.epoch) + (from.finished ? 1 : 0);
  const std::int64_t batches = from.finished ? 0 : static_cast<std::int64_t>(from.batches);
  const auto steps_until = [&](std::int64_t batch) {
    return ceil_div(std::max<std::int64_t>(0, batch - batches), in_step);
  };
  const std::int64_t left_in_pass = steps_until(plan.steps_in_epoch);
  if (arguments_.max_steps > 0) {
    const std::int64_t later = std::max<std::int64_t>(0, plan.max_steps - state_.global_step - left_in_pass);
    plan.num_train_epochs = epoch + 1 + ceil_div(later, in_epoch);
    return;
  }
  const std::int64_t last_epoch = plan.max_steps / in_epoch;
  const std::int64_t in_last = plan.max_steps % in_epoch;
  std::int64_t left = 0;
  if (epoch < last_epoch) left = left_in_pass + (last_epoch - epoch - 1) * in_epoch + in_last;
  if (epoch == last_epoch) left = steps_until(in_last * in_step);
  plan.max_steps = state_.global_step + left;
}

void TrainerBase::show_banner(const Plan& plan) {
  if (!shows_progress()) return;
  std::int64_t trainable = 0;
  for (const at::Tensor& parameter : module().parameters())
    if (parameter.requires_grad()) trainable += parameter.numel();
  std::string text = "***** Running training *****\n";
  const auto line = [&](const char* name, const std::string& value) {
    text += std::string("  ") + name + " = " + value + "\n";
  };
  using detail::with_thousands;
  line("Num examples", with_thousands(plan.num_examples));
  line("Num Epochs", with_thousands(plan.num_train_epochs));
  line("Num update steps per epoch", with_thousands(plan.num_update_steps_per_epoch));
  line("Instantaneous batch size per device", with_thousands(arguments_.per_device_train_batch_size));
  line("Total train batch size (w. parallel, distributed & accumulation)",
       with_thousands(plan.total_train_batch_size));
  line("Gradient Accumulation steps", std::to_string(arguments_.gradient_accumulation_steps));
  line("Total optimization steps", with_thousands(plan.max_steps));
  line("Number of trainable parameters", with_thousands(trainable));
  std::fputs(text.c_str(), stderr);
}

TrainOutput TrainerBase::train(const std::string& resume_from_checkpoint) {
  accelerator_->free_memory();
  if (arguments_.gradient_checkpointing) enable_gradient_checkpointing();
  prepare_training();
  const auto native = options_.optimizer ? options_.optimizer : create_optimizer();
  if (std::exchange(native_, native) != native) initial_rates_.clear();
  optimizer_ = accelerator_->prepare_optimizer(native);
  Plan plan = plan_training();
  plan_record_->set(plan);
  create_scheduler(*optimizer_, plan.max_steps);

  const TrainerState before = state_;
  state_ = TrainerState();
  state_.is_local_process_zero = before.is_local_process_zero;
  state_.is_world_process_zero = before.is_world_process_zero;
  saved_steps_.clear();
  const fs::path checkpoint = checkpoint_to_resume(
      resume_from_checkpoint.empty() ? arguments_.resume_from_checkpoint : resume_from_checkpoint);
  LoaderPosition position;
  if (!checkpoint.empty()) {
    resume(checkpoint);
    position = train_position();
    if (arguments_.ignore_data_skip) position = {.epoch = position.epoch + (position.finished ? 1 : 0)};
    continue_with(plan, position);
  }
  state_.max_steps = plan.max_steps;
  state_.num_train_epochs = plan.num_train_epochs;
  state_.train_batch_size = arguments_.per_device_train_batch_size;
  state_.logging_steps = interval(arguments_.logging_steps, plan.max_steps);
  state_.save_steps = interval(arguments_.save_steps, plan.max_steps);
  if (arguments_.eval_steps) state_.eval_steps = interval(*arguments_.eval_steps, plan.max_steps);
  if (!arguments_.report_to.empty())
    accelerator_->init_trackers(arguments_.run_name.empty() ? "trainer" : arguments_.run_name,
                                tracked_config(arguments_));

  show_banner(plan);
  Counters counters;
  counters.loss = at::zeros({}, at::TensorOptions(accelerator_->device()));
  counters.first_step = counters.step_of_last_log = state_.global_step;
  if (!checkpoint.empty() && shows_progress())
    std::fprintf(stderr, "  Resuming training from checkpoint with epoch %ld and global step %ld\n",
                 long(position.epoch), long(state_.global_step));

  is_training_ = true;
  stopped_ = false;
  control_ = {};
  optimizer_->zero_grad();
  fire(&TrainerCallback::on_train_begin);
  if (arguments_.eval_on_start) evaluate_in_training();
  // The signals count from here on, not only from the end of the first step.
  if (arguments_.enable_jit_checkpoint) accelerator_->should_stop();
  // Nothing is left to train after a checkpoint of the last step.
  if (state_.global_step >= plan.max_steps) control_.should_training_stop = true;
  const auto num_epochs = static_cast<std::uint64_t>(plan.num_train_epochs);
  for (; position.epoch < num_epochs && !control_.should_training_stop;
       position = {.epoch = position.epoch + 1})
    train_epoch(plan, counters, position);
  return finish(plan, counters);
}

void TrainerBase::train_epoch(const Plan& plan, Counters& counters, const LoaderPosition& from) {
  control_.should_epoch_stop = false;
  fire(&TrainerCallback::on_epoch_begin);
  begin_epoch(from.epoch, from.in_pass());
  std::size_t batches_done = from.batches;
  const auto is_over = [&] { return control_.should_epoch_stop || control_.should_training_stop; };
  while (!is_over()) {
    const std::size_t batches =
        read_batches(static_cast<std::size_t>(arguments_.gradient_accumulation_steps));
    if (batches == 0) break;
    control_.should_log = control_.should_evaluate = control_.should_save = false;
    fire(&TrainerCallback::on_step_begin);
    for (std::size_t i = 0; i < batches && !is_over(); ++i) {
      const bool is_last = i + 1 == batches;
      accelerator_->set_sync_gradients(is_last);
      const at::Tensor loss = train_on(i, batches, is_last);
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
      ++state_.global_step;
      state_.epoch = double(from.epoch) + std::min(1.0, double(batches_done) / double(plan.steps_in_epoch));
      fire(&TrainerCallback::on_step_end);
      stop_if_asked();
      if (control_.should_epoch_stop) skip_rest_of_epoch();
      log_save_evaluate(counters);
    }
  }
  end_epoch();
  if (batches_done == 0 && !from.in_pass() && !is_over()) {
    // A pass without batches: an iterable data set has ended before max_steps, and will not have more.
    control_.should_training_stop = true;
  }
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

void TrainerBase::step_optimizer(Counters& counters) {
  const double max_norm =
      arguments_.max_grad_norm > 0 ? arguments_.max_grad_norm : std::numeric_limits<double>::infinity();
  counters.grad_norm = accelerator_->clip_grad_norm_(module().parameters(), max_norm);
  fire(&TrainerCallback::on_pre_optimizer_step);
  optimizer_->step();
  fire(&TrainerCallback::on_optimizer_step);
  counters.learning_rate = scheduler_ ? scheduler_->last_lr().front() : plateau_->last_lr().front();
  if (scheduler_ && !accelerator_->optimizer_step_was_skipped()) scheduler_->step();
  optimizer_->zero_grad();
}

void TrainerBase::log(Metrics entry) {
  entry["epoch"] = state_.epoch;
  control_.should_log = false;
  callbacks_.call(&TrainerCallback::on_log, arguments_, state_, control_, entry);
  if (!arguments_.report_to.empty() && is_training_) accelerator_->log(tracked(entry), state_.global_step);
  entry["step"] = double(state_.global_step);
  state_.log_history.push_back(std::move(entry));
}

void TrainerBase::log_save_evaluate(Counters& counters) {
  if (control_.should_log && state_.global_step > counters.step_of_last_log) {
    const double loss = accelerator_->gather(counters.loss.reshape({1})).mean().item<double>();
    counters.loss.zero_();
    Metrics entry = {{"loss", loss / double(state_.global_step - counters.step_of_last_log)}};
    if (counters.grad_norm) entry["grad_norm"] = counters.grad_norm->item<double>();
    if (counters.learning_rate) entry["learning_rate"] = *counters.learning_rate;
    counters.total_loss += loss;
    counters.step_of_last_log = state_.global_step;
    log(std::move(entry));
  }
  if (control_.should_evaluate) evaluate_in_training();
  if (control_.should_save) {
    save_checkpoint();
    control_.should_save = false;
    fire(&TrainerCallback::on_save);
  }
}

void TrainerBase::evaluate_in_training() {
  const Metrics metrics = evaluate();
  if (!arguments_.metric_for_best_model.empty()) {
    const double value = detail::metric_for_best_model(arguments_, metrics);
    const bool is_best = detail::is_better(arguments_, value, state_.best_metric);
    if (is_best) {
      state_.best_metric = value;
      if (arguments_.save_strategy != SaveStrategy::no) state_.best_global_step = state_.global_step;
    }
    if (arguments_.save_strategy == SaveStrategy::best) control_.should_save = is_best;
    if (plateau_ && state_.global_step > 0) plateau_->step(value);
  }
}

Metrics TrainerBase::evaluate() {
  if (!has_eval_data())
    throw Error({.what = "there is no evaluation data",
                 .where = "Trainer",
                 .hint = "give it after the training data, or set eval_strategy to no"});
  return run_evaluation(evaluation_pass(), "Evaluation", "eval", false).metrics;
}

PredictionOutput TrainerBase::run_evaluation(const EvaluationPass& pass, const char* title,
                                             const std::string& prefix, bool wants_predictions) {
  const Clock::time_point start = Clock::now();
  if (!is_training_ && shows_progress())
    std::fprintf(stderr, "***** Running %s *****\n  Num examples = %s\n  Batch size = %d\n", title,
                 pass.num_batches ? std::to_string(pass.num_examples).c_str() : "Unknown",
                 arguments_.per_device_eval_batch_size);
  const bool keeps_predictions =
      wants_predictions || (options_.compute_metrics && !arguments_.prediction_loss_only);
  std::vector<at::Tensor> losses;
  std::vector<at::Tensor> predictions;
  std::vector<at::Tensor> labels;
  const auto keep = [&](std::vector<at::Tensor>& all, const at::Tensor& part) {
    if (!keeps_predictions || !part.defined()) return;
    const at::Tensor whole =
        part.dim() < 2 ? part : accelerator_->pad_across_processes(part, {.dim = 1, .pad_index = kPadding});
    all.push_back(accelerator_->gather_for_metrics(whole.contiguous()).cpu());
  };
  std::size_t examples = 0;
  pass.for_each([&](const LossOutput& output, std::int64_t rows) {
    examples += static_cast<std::size_t>(rows);
    if (output.loss.defined())
      losses.push_back(
          accelerator_
              ->gather_for_metrics(output.loss.detach().mean().to(at::kFloat).reshape({1}).repeat({rows}))
              .cpu());
    keep(predictions, output.logits);
    keep(labels, output.labels);
    callbacks_.call(&TrainerCallback::on_prediction_step, arguments_, state_, control_, pass.num_batches);
  });
  if (pass.num_batches) examples = pass.num_examples;

  PredictionOutput result;
  result.predictions = joined(std::move(predictions));
  result.label_ids = joined(std::move(labels));
  if (options_.compute_metrics && result.predictions.defined() && result.label_ids.defined()) {
    for (const auto& [name, value] :
         options_.compute_metrics({.predictions = result.predictions, .label_ids = result.label_ids}))
      result.metrics[name.starts_with(prefix + "_") ? name : prefix + "_" + name] = value;
  }
  if (!losses.empty()) {
    at::Tensor all = at::cat(losses);
    const at::Tensor finite = at::isfinite(all);
    if (arguments_.logging_nan_inf_filter && finite.any().item<bool>()) all = all.masked_select(finite);
    result.metrics[prefix + "_loss"] = all.to(at::kDouble).mean().item<double>();
  }
  const double total_batch = double(arguments_.per_device_eval_batch_size) * accelerator_->num_processes();
  add_speed(result.metrics, prefix, seconds_since(start), double(examples),
            std::ceil(double(examples) / total_batch));
  if (wants_predictions) {
    callbacks_.call(&TrainerCallback::on_predict, arguments_, state_, control_, result.metrics);
  } else {
    log(result.metrics);
    result.metrics["epoch"] = state_.epoch;
    control_.should_evaluate = false;
    callbacks_.call(&TrainerCallback::on_evaluate, arguments_, state_, control_, result.metrics);
  }
  return result;
}

fs::path TrainerBase::checkpoint_folder(std::int64_t step) const {
  return arguments_.output_dir / (kCheckpointPrefix + std::to_string(step));
}

// The best model may have been evaluated after its checkpoint was saved.
void TrainerBase::note_saved(std::int64_t step) {
  saved_steps_.insert(step);
  if (state_.best_global_step && saved_steps_.contains(*state_.best_global_step))
    state_.best_model_checkpoint = checkpoint_folder(*state_.best_global_step);
}

void TrainerBase::save_checkpoint() {
  accelerator_->wait_for_save();  // the one before is in its place
  const fs::path folder = checkpoint_folder(state_.global_step);
  note_saved(state_.global_step);
  state_.stateful_callbacks = callbacks_.states();
  const bool writes = accelerator_->should_save_model();
  if (writes) detail::remove_leftovers(arguments_.output_dir);
  accelerator_->wait_for_everyone();
  const auto write_state = [&](const fs::path& place) {
    if (!writes) return;
    replace_file(place / kArgumentsFile, to_json(arguments_));
    replace_file(place / kStateFile, to_json(state_));
  };
  if (arguments_.save_only_model) {
    save_weights(folder);
    write_state(folder);
    accelerator_->wait_for_everyone();
    rotation()();
  } else {
    accelerator_->save_state(
        folder,
        {.background = arguments_.save_in_background, .add_files = write_state, .on_saved = rotation()});
  }
}

std::function<void()> TrainerBase::rotation() const {
  if (!arguments_.save_total_limit || !accelerator_->should_save_model()) return [] {};
  const fs::path best = state_.best_model_checkpoint;
  return [limit = *arguments_.save_total_limit, folder = absolute_path(arguments_.output_dir),
          best = best.empty() ? best : absolute_path(best),
          saved = saved_steps_] { rotate_checkpoints(folder, limit, best, saved); };
}

fs::path TrainerBase::checkpoint_to_resume(const std::string& wanted) const {
  if (wanted.empty() || wanted == "false") return {};
  if (wanted != "last" && wanted != "true") return wanted;
  const std::vector<NumberedCheckpoint> all = checkpoints_in(arguments_.output_dir);
  if (!all.empty()) return all.back().folder;
  if (wanted == "last") return {};
  throw Error({.kind = ErrorKind::config,
               .what = "no checkpoint in " + arguments_.output_dir.string(),
               .where = "resume_from_checkpoint"});
}

void TrainerBase::resume(const fs::path& checkpoint) {
  const bool is_local = state_.is_local_process_zero;
  const bool is_world = state_.is_world_process_zero;
  // Read as a part of the checkpoint: of the save of which everything else is.
  HookHandle hook = accelerator_->register_load_state_pre_hook(
      [&](std::vector<torch::nn::Module*>& /*models*/, const fs::path& place) {
        state_ = read_trainer_state(place / kStateFile);
      });
  const auto remove = [](HookHandle* registered) { registered->remove(); };
  const std::unique_ptr<HookHandle, decltype(remove)> until_loaded(&hook, remove);
  accelerator_->load_state(checkpoint);
  state_.is_local_process_zero = is_local;
  state_.is_world_process_zero = is_world;
  if (fs::path& best = state_.best_model_checkpoint; !best.empty() && !fs::exists(best)) {
    // The whole training may have been moved.
    best = checkpoint.parent_path() / best.filename();
    if (!fs::exists(best)) best.clear();
  }
  if (is_same_folder(checkpoint, checkpoint_folder(state_.global_step)))
    saved_steps_.insert(state_.global_step);
  callbacks_.load_states(state_.stateful_callbacks);
}

TrainOutput TrainerBase::finish(const Plan& plan, Counters& counters) {
  accelerator_->wait_for_save();
  counters.total_loss += accelerator_->gather(counters.loss.reshape({1})).mean().item<double>();
  const std::int64_t steps = state_.global_step - counters.first_step;
  TrainOutput output{.global_step = state_.global_step,
                     .training_loss = steps > 0 ? counters.total_loss / double(steps) : 0};
  const double share = plan.max_steps > 0 ? double(steps) / double(plan.max_steps) : 0;
  add_speed(output.metrics, "train", seconds_since(counters.started), plan.num_train_samples * share,
            double(steps));
  output.metrics["train_loss"] = output.training_loss;
  log(output.metrics);
  output.metrics["epoch"] = state_.epoch;
  const fs::path& best = state_.best_model_checkpoint;
  if (arguments_.load_best_model_at_end && !stopped_) {
    accelerator_->wait_for_everyone();
    if (!best.empty()) {
      load_weights(best);
    } else if (shows_progress()) {
      std::fprintf(stderr, "  No checkpoint is the best: the model keeps the weights of the last step\n");
    }
  }
  // With a limit of 1 only the best checkpoint is kept. Until now the newest was needed for resuming.
  if (arguments_.save_total_limit == 1 && !best.empty() && !stopped_) {
    accelerator_->wait_for_everyone();
    accelerator_->on_main_process([&] {
      if (!is_same_folder(absolute_path(best).parent_path(), arguments_.output_dir)) return;
      for (const NumberedCheckpoint& checkpoint : checkpoints_in(arguments_.output_dir))
        if (!is_same_folder(checkpoint.folder, best)) detail::remove_folder(checkpoint.folder);
    });
  }
  fire(&TrainerCallback::on_train_end);
  is_training_ = false;
  return output;
}

void TrainerBase::save_model(fs::path folder) {
  if (folder.empty()) folder = arguments_.output_dir;
  save_weights(folder);
  accelerator_->on_main_process([&] { replace_file(folder / kArgumentsFile, to_json(arguments_)); });
}

void TrainerBase::save_state() {
  accelerator_->on_main_process([&] {
    fs::create_directories(arguments_.output_dir);
    replace_file(arguments_.output_dir / kStateFile, to_json(state_));
  });
}

void TrainerBase::save_metrics(const std::string& split, const Metrics& metrics) {
  accelerator_->on_main_process([&] {
    fs::create_directories(arguments_.output_dir);
    replace_file(arguments_.output_dir / (split + "_results.json"), nlohmann::json(metrics).dump(4) + "\n");
  });
}

}  // namespace acc
