// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/training_arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <ranges>
#include <type_traits>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/trainer/inert_arguments.hpp"

namespace acc {
namespace {

using Json = nlohmann::json;

template <class Enum>
using Names = std::vector<std::pair<const char*, Enum>>;

// If a value has several names, the first one is written.
const Names<IntervalStrategy>& names_of(IntervalStrategy /*type*/) {
  static const Names<IntervalStrategy> names = {
      {"no", IntervalStrategy::no}, {"steps", IntervalStrategy::steps}, {"epoch", IntervalStrategy::epoch}};
  return names;
}
const Names<SaveStrategy>& names_of(SaveStrategy /*type*/) {
  static const Names<SaveStrategy> names = {{"no", SaveStrategy::no},
                                            {"steps", SaveStrategy::steps},
                                            {"epoch", SaveStrategy::epoch},
                                            {"best", SaveStrategy::best}};
  return names;
}
const Names<SchedulerType>& names_of(SchedulerType /*type*/) {
  static const Names<SchedulerType> names = {{"linear", SchedulerType::linear},
                                             {"cosine", SchedulerType::cosine},
                                             {"cosine_with_restarts", SchedulerType::cosine_with_restarts},
                                             {"polynomial", SchedulerType::polynomial},
                                             {"constant", SchedulerType::constant},
                                             {"constant_with_warmup", SchedulerType::constant_with_warmup},
                                             {"inverse_sqrt", SchedulerType::inverse_sqrt},
                                             {"reduce_lr_on_plateau", SchedulerType::reduce_lr_on_plateau}};
  return names;
}
const Names<OptimizerName>& names_of(OptimizerName /*type*/) {
  static const Names<OptimizerName> names = {
      {"adamw_torch", OptimizerName::adamw_torch}, {"adamw_torch_fused", OptimizerName::adamw_torch},
      {"adamw", OptimizerName::adamw_torch},       {"sgd", OptimizerName::sgd},
      {"adagrad", OptimizerName::adagrad},         {"rmsprop", OptimizerName::rmsprop}};
  return names;
}

// Calls `visit(name, field, help)` for each argument. Reading, writing and listing arguments all use this
// table.
template <class Arguments, class Visit>
void for_each_argument(Arguments& a, const Visit& visit) {
  visit("output_dir", a.output_dir, "folder for checkpoints and logs");
  visit("do_train", a.do_train, "for the program: train");
  visit("do_eval", a.do_eval, "for the program: evaluate");
  visit("do_predict", a.do_predict, "for the program: predict");
  visit("per_device_train_batch_size", a.per_device_train_batch_size, "batch size per process");
  visit("per_device_eval_batch_size", a.per_device_eval_batch_size, "batch size per process in evaluation");
  visit("gradient_accumulation_steps", a.gradient_accumulation_steps, "batches per optimizer step");
  visit("num_train_epochs", a.num_train_epochs, "passes over the data; may have a fraction");
  visit("max_steps", a.max_steps, "number of optimizer steps; overrides num_train_epochs unless negative");
  visit("optim", a.optim, "optimizer");
  visit("optim_args", a.optim_args, "more options of the optimizer, such as momentum=0.9");
  visit("learning_rate", a.learning_rate, "learning rate after warmup");
  visit("weight_decay", a.weight_decay, "weight decay; not applied to biases and normalization");
  visit("adam_beta1", a.adam_beta1, "AdamW's first beta");
  visit("adam_beta2", a.adam_beta2, "AdamW's second beta");
  visit("adam_epsilon", a.adam_epsilon, "AdamW's epsilon");
  visit("max_grad_norm", a.max_grad_norm, "maximum norm of gradients, for clipping; 0: no clipping");
  visit("lr_scheduler_type", a.lr_scheduler_type, "schedule of the learning rate");
  visit("lr_scheduler_kwargs", a.lr_scheduler_kwargs, "more options of the schedule, a JSON object");
  visit("warmup_steps", a.warmup_steps, "steps, or a fraction of all, in which the learning rate rises");
  visit("label_smoothing_factor", a.label_smoothing_factor, "label smoothing of the default loss");
  visit("bf16", a.bf16, "mixed precision with bfloat16");
  visit("fp16", a.fp16, "mixed precision with float16");
  visit("use_cpu", a.use_cpu, "use the CPU even if there are GPUs");
  visit("gradient_checkpointing", a.gradient_checkpointing,
        "recompute activations in backward to save memory");
  visit("seed", a.seed, "seed of all random number generators");
  visit("data_seed", a.data_seed, "seed of the order of samples; default: seed");
  visit("full_determinism", a.full_determinism, "use only deterministic algorithms");
  visit("dataloader_drop_last", a.dataloader_drop_last, "drop the last batch if it is not full");
  visit("dataloader_num_workers", a.dataloader_num_workers, "threads that read batches ahead");
  visit("dataloader_pin_memory", a.dataloader_pin_memory, "copy batches to page-locked memory");
  visit("dataloader_prefetch_factor", a.dataloader_prefetch_factor, "batches that each worker reads ahead");
  visit("remove_unused_columns", a.remove_unused_columns, "accepted without effect");
  visit("logging_strategy", a.logging_strategy, "when the loss is logged");
  visit("logging_steps", a.logging_steps, "steps between logs, or a fraction of all");
  visit("logging_first_step", a.logging_first_step, "log the first step too");
  visit("logging_nan_inf_filter", a.logging_nan_inf_filter, "leave NaN and infinite losses out of logs");
  visit("report_to", a.report_to, "trackers, separated by commas");
  visit("logging_dir", a.logging_dir, "folder for trackers; default: runs in output_dir");
  visit("run_name", a.run_name, "name of this training for trackers");
  visit("disable_tqdm", a.disable_tqdm, "do not show progress");
  visit("eval_strategy", a.eval_strategy, "when to evaluate");
  visit("eval_steps", a.eval_steps, "steps between evaluations; default: logging_steps");
  visit("eval_delay", a.eval_delay, "epochs or steps before the first evaluation");
  visit("eval_on_start", a.eval_on_start, "evaluate before training");
  visit("prediction_loss_only", a.prediction_loss_only, "evaluate only the loss");
  visit("save_strategy", a.save_strategy, "when to save a checkpoint");
  visit("save_steps", a.save_steps, "steps between checkpoints, or a fraction of all");
  visit("memory_save_steps", a.memory_save_steps,
        "steps between states in memory, or a fraction of all; 0: none");
  visit("save_total_limit", a.save_total_limit, "number of checkpoints that are kept");
  visit("save_only_model", a.save_only_model, "save only the model; training cannot be resumed");
  visit("save_in_background", a.save_in_background, "train on while a checkpoint is written");
  visit("save_on_each_node", a.save_on_each_node, "save on every machine");
  visit("enable_jit_checkpoint", a.enable_jit_checkpoint,
        "save a checkpoint and end the training on SIGTERM, SIGUSR1 or SIGUSR2");
  visit("load_best_model_at_end", a.load_best_model_at_end,
        "load the weights of the best checkpoint at the end");
  visit("metric_for_best_model", a.metric_for_best_model,
        "metric that determines the best model; default: loss");
  visit("greater_is_better", a.greater_is_better,
        "whether a greater metric is better; default: unless its name ends with loss");
  visit("resume_from_checkpoint", a.resume_from_checkpoint, "folder of a checkpoint, or last");
  visit("ignore_data_skip", a.ignore_data_skip, "resume at the start of the epoch instead of within it");
  visit("ddp_find_unused_parameters", a.ddp_find_unused_parameters, "DDP's find_unused_parameters");
  visit("ddp_bucket_cap_mb", a.ddp_bucket_cap_mb, "DDP's bucket_cap_mb");
  visit("ddp_broadcast_buffers", a.ddp_broadcast_buffers, "DDP's broadcast_buffers");
  visit("ddp_static_graph", a.ddp_static_graph, "DDP's static_graph");
  visit("ddp_timeout", a.ddp_timeout, "maximum seconds that a process waits for the others");
}

// Maps names of transformers 4, which many scripts still use, to the present names.
const std::map<std::string_view, std::string_view>& former_names() {
  static const std::map<std::string_view, std::string_view> names = {
      {"evaluation_strategy", "eval_strategy"}, {"warmup_ratio", "warmup_steps"}, {"no_cuda", "use_cpu"}};
  return names;
}

std::string_view present_name(std::string_view name) {
  const auto found = former_names().find(name);
  return found == former_names().end() ? name : found->second;
}

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {
  using Value = T;
};

[[noreturn]] void refuse(const std::string& where, const std::string& what, const std::string& hint = {}) {
  throw Error({.kind = ErrorKind::config, .what = what, .where = where, .hint = hint});
}

template <class Enum>
std::string choices() {
  return fmt::format("{}", fmt::join(names_of(Enum()) | std::views::keys, ", "));
}

template <class T>
Json to_value(const T& field) {
  if constexpr (IsOptional<T>::value) {
    return field ? to_value(*field) : Json();
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& [name, value] : names_of(field))
      if (value == field) return name;
    return Json();
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return field.string();
  } else {
    return field;
  }
}

template <class T>
void from_value(const Json& value, T& field, const std::string& where) {
  if constexpr (IsOptional<T>::value) {
    if (value.is_null()) return field.reset();
    typename IsOptional<T>::Value inner = {};
    from_value(value, inner, where);
    field = std::move(inner);
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& [name, choice] : names_of(field)) {
      if (value.is_string() && value.get<std::string>() == name) {
        field = choice;
        return;
      }
    }
    refuse(where, value.dump() + " is not one of its values", "use one of " + choices<T>());
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) refuse(where, value.dump() + " is not true or false");
    field = value.get<bool>();
  } else if constexpr (std::integral<T>) {
    const bool fits = value.is_number_integer() && (std::is_signed_v<T> || value >= 0) &&
                      value.get<T>() == value;  // NOLINT: compares after narrowing
    if (!fits) refuse(where, value.dump() + " is not an integer in its range");
    field = value.get<T>();
  } else if constexpr (std::floating_point<T>) {
    if (!value.is_number()) refuse(where, value.dump() + " is not a number");
    field = value.get<T>();
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    // As transformers, accepts a single name as well as a list.
    field.clear();
    if (value.is_null()) return;
    for (const Json& item : value.is_array() ? value : Json::array({value})) {
      if (!item.is_string()) refuse(where, value.dump() + " is not a list of names");
      if (item != "none") field.push_back(item.get<std::string>());
    }
  } else if constexpr (std::is_same_v<T, std::map<std::string, double>>) {
    field.clear();
    if (value.is_null()) return;
    if (!value.is_object()) refuse(where, value.dump() + " is not an object of numbers");
    for (const auto& [key, number] : value.items()) {
      if (!number.is_number()) refuse(where + ": " + key, number.dump() + " is not a number");
      field[key] = number.template get<double>();
    }
  } else {
    if (value.is_null()) {
      field = T();
    } else if (value.is_string()) {
      field = value.get<std::string>();
    } else {
      // resume_from_checkpoint: true
      field = value.dump();
    }
  }
}

// Converts a flag's text to the JSON value that a file would have. Text that is not JSON is a string.
template <class T>
Json value_of_flag([[maybe_unused]] const T& type, const std::string& text) {
  if constexpr (IsOptional<T>::value) {
    return value_of_flag(typename IsOptional<T>::Value(), text);
  } else if constexpr (std::is_same_v<T, bool>) {
    static const std::map<std::string, bool> truths = {{"true", true},   {"1", true},  {"yes", true},
                                                       {"false", false}, {"0", false}, {"no", false}};
    const auto found = truths.find(to_lower(text));
    return found == truths.end() ? Json(text) : Json(found->second);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::map<std::string, double>>) {
    Json value = Json::parse(text, nullptr, false);
    return value.is_discarded() ? Json(text) : value;
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    Json names = Json::array();
    for (const std::string& name : split(text, ','))
      if (!name.empty()) names.push_back(name);
    return names;
  } else {
    return text;
  }
}

std::string spellings_of(const std::string& name) {
  std::string dashed = name;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed == name ? "--" + name : "--" + name + ",--" + dashed;
}

// A flag without a value is true.
std::string text_of_flag(const std::vector<std::string>& texts) {
  return texts.empty() || texts.front().empty() ? "true" : texts.front();
}

void add_inert_flag(CLI::App& app, const detail::InertArgument& argument) {
  const std::string name(argument.name);
  app.add_option_function<std::vector<std::string>>(
         spellings_of(name),
         [&argument, flag = "--" + name](const std::vector<std::string>& texts) {
           detail::require_inert_text(argument, text_of_flag(texts), flag);
         })
      ->expected(0, 1)
      ->take_last()
      ->trigger_on_parse()
      ->group("");  // not in the help
}

template <class Field>
void add_flag(CLI::App& app, const std::string& name, Field& field, const char* help) {
  constexpr bool kIsTruth = std::is_same_v<Field, bool> || std::is_same_v<Field, std::optional<bool>>;
  CLI::Option* option = app.add_option_function<std::vector<std::string>>(
      spellings_of(name),
      [&field, flag = "--" + name](const std::vector<std::string>& texts) {
        from_value(value_of_flag(field, text_of_flag(texts)), field, flag);
      },
      help);
  option->expected(kIsTruth ? 0 : 1, 1)->take_last()->trigger_on_parse();
  const Json value = to_value(std::as_const(field));
  // For flags without a value CLI11 would use the default string as value.
  if (!kIsTruth) option->default_str(value.is_string() ? value.get<std::string>() : value.dump());
  option->run_callback_for_default(false);
}

void add_flags(CLI::App& app, TrainingArguments& arguments) {
  app.set_help_flag();
  app.allow_extras();
  for_each_argument(arguments, [&](const char* name, auto& field, const char* help) {
    add_flag(app, name, field, help);
    for (const auto& [former, present] : former_names())
      if (present == name)
        add_flag(app, std::string(former), field, "the name of the previous argument in transformers 4");
  });
  for (const detail::InertArgument& argument : detail::inert_arguments()) add_inert_flag(app, argument);
}

std::vector<std::string> names_of_arguments() {
  std::vector<std::string> names;
  const TrainingArguments arguments;
  for_each_argument(arguments, [&](const char* name, const auto& /*field*/, const char* /*help*/) {
    names.emplace_back(name);
  });
  return names;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

[[noreturn]] void refuse_argument(const char* name, const std::string& what, const std::string& hint = {}) {
  throw Error({.what = what, .where = name, .hint = hint});
}

void require_positive(const char* name, double value) {
  if (!(value > 0)) refuse_argument(name, "must be greater than 0");
}

}  // namespace

TrainingArguments completed(TrainingArguments arguments) {
  TrainingArguments& a = arguments;
  require_positive("per_device_train_batch_size", a.per_device_train_batch_size);
  require_positive("per_device_eval_batch_size", a.per_device_eval_batch_size);
  require_positive("gradient_accumulation_steps", a.gradient_accumulation_steps);
  if (a.max_steps < 0) require_positive("num_train_epochs", a.num_train_epochs);
  if (a.max_steps == 0)
    refuse_argument("max_steps", "is 0", "give a number of steps, or -1 to train by epochs");
  if (a.warmup_steps < 0) refuse_argument("warmup_steps", "is negative");
  if (a.label_smoothing_factor < 0 || a.label_smoothing_factor >= 1)
    refuse_argument("label_smoothing_factor", "must be at least 0 and less than 1");
  if (a.dataloader_num_workers < 0) refuse_argument("dataloader_num_workers", "is negative");
  if (a.save_total_limit && *a.save_total_limit < 1)
    refuse_argument("save_total_limit", "must be at least 1");
  if (a.save_in_background && a.save_only_model)
    refuse_argument("save_in_background, save_only_model", "exclude each other", "choose one");
  if (a.bf16 && a.fp16) refuse_argument("bf16, fp16", "exclude each other", "choose one");
  if (a.logging_strategy == IntervalStrategy::steps) require_positive("logging_steps", a.logging_steps);
  if (a.save_strategy == SaveStrategy::steps) require_positive("save_steps", a.save_steps);
  if (a.memory_save_steps != 0) require_positive("memory_save_steps", a.memory_save_steps);
  if (!a.eval_steps && a.eval_strategy == IntervalStrategy::steps) a.eval_steps = a.logging_steps;
  if (a.eval_steps) require_positive("eval_steps", *a.eval_steps);
  if (a.logging_dir.empty()) a.logging_dir = a.output_dir / "runs";

  if (a.load_best_model_at_end) {
    if (a.save_strategy != SaveStrategy::best) {
      const bool alike =
          (a.save_strategy == SaveStrategy::epoch && a.eval_strategy == IntervalStrategy::epoch) ||
          (a.save_strategy == SaveStrategy::steps && a.eval_strategy == IntervalStrategy::steps);
      if (!alike)
        refuse_argument("load_best_model_at_end", "needs save_strategy and eval_strategy to be the same",
                        "set both to epoch or both to steps, or save_strategy to best");
      if (a.save_strategy == SaveStrategy::steps && std::fmod(a.save_steps, *a.eval_steps) != 0)
        refuse_argument("load_best_model_at_end", "needs save_steps to be a multiple of eval_steps");
    }
    if (a.metric_for_best_model.empty()) a.metric_for_best_model = "loss";
  }
  if (a.save_strategy == SaveStrategy::best && a.metric_for_best_model.empty())
    refuse_argument("save_strategy", "best needs metric_for_best_model");
  if (a.lr_scheduler_type == SchedulerType::reduce_lr_on_plateau) {
    if (a.eval_strategy == IntervalStrategy::no)
      refuse_argument("lr_scheduler_type", "reduce_lr_on_plateau needs an eval_strategy");
    if (a.metric_for_best_model.empty()) a.metric_for_best_model = "loss";
  }
  if (!a.metric_for_best_model.empty() && !a.greater_is_better)
    a.greater_is_better = !a.metric_for_best_model.ends_with("loss");
  return arguments;
}

TrainingArguments parse_training_arguments(int argc, const char* const* argv,
                                           const TrainingArguments& defaults,
                                           std::vector<std::string>* rest) {
  if (argc == 2 && std::string_view(argv[1]).ends_with(".json"))
    return read_training_arguments(argv[1], defaults);
  TrainingArguments arguments = defaults;
  CLI::App app;
  add_flags(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw Error({.what = error.what(), .where = argv[0]});
  }
  const std::vector<std::string> extras = app.remaining();
  if (rest) {
    *rest = extras;
  } else if (!extras.empty()) {
    const auto meant = nearest(extras.front(), flags_of(app));
    throw Error({.what = "is not a training argument",
                 .where = extras.front(),
                 .hint = meant ? "did you mean " + *meant + "?" : std::string()});
  }
  return arguments;
}

std::string training_arguments_help(const TrainingArguments& defaults) {
  TrainingArguments arguments = defaults;
  CLI::App app;
  add_flags(app, arguments);
  return app.help();
}

TrainingArguments read_training_arguments(const std::filesystem::path& file,
                                          const TrainingArguments& defaults) {
  const Json object = Json::parse(read_file(file), nullptr, false);
  if (!object.is_object()) refuse(file.string(), "is not a JSON object");
  TrainingArguments arguments = defaults;
  for (const auto& [key, value] : object.items()) {
    const std::string where = file.string() + ": " + key;
    const std::string_view name = present_name(key);
    const detail::InertArgument* inert = detail::find_inert_argument(name);
    if (inert) detail::require_inert(*inert, value, where);
    bool is_known = inert != nullptr;
    for_each_argument(arguments, [&](const char* argument, auto& field, const char* /*help*/) {
      if (name != argument) return;
      is_known = true;
      from_value(value, field, where);
    });
    if (!is_known) refuse(where, "is not a training argument", did_you_mean(key, names_of_arguments()));
  }
  return arguments;
}

std::string to_json(const TrainingArguments& arguments) {
  Json object = Json::object();
  for_each_argument(arguments, [&](const char* name, const auto& field, const char* /*help*/) {
    object[name] = to_value(field);
  });
  return object.dump(2) + "\n";
}

}  // namespace acc
