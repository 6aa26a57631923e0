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

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/home.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/trainer/argument_range.hpp"
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
  static const Names<SchedulerType> names = {
      {"linear", SchedulerType::linear},
      {"cosine", SchedulerType::cosine},
      {"cosine_with_restarts", SchedulerType::cosine_with_restarts},
      {"polynomial", SchedulerType::polynomial},
      {"constant", SchedulerType::constant},
      {"constant_with_warmup", SchedulerType::constant_with_warmup},
      {"inverse_sqrt", SchedulerType::inverse_sqrt},
      {"reduce_lr_on_plateau", SchedulerType::reduce_lr_on_plateau},
      {"cosine_with_min_lr", SchedulerType::cosine_with_min_lr},
      {"cosine_warmup_with_min_lr", SchedulerType::cosine_warmup_with_min_lr},
      {"warmup_stable_decay", SchedulerType::warmup_stable_decay},
      {"greedy", SchedulerType::greedy}};
  return names;
}
const Names<SamplingStrategy>& names_of(SamplingStrategy /*type*/) {
  static const Names<SamplingStrategy> names = {{"random", SamplingStrategy::random},
                                                {"sequential", SamplingStrategy::sequential},
                                                {"group_by_length", SamplingStrategy::group_by_length}};
  return names;
}
const Names<TokenCount>& names_of(TokenCount /*type*/) {
  static const Names<TokenCount> names = {{"no", TokenCount::no},
                                          {"all", TokenCount::all},
                                          {"non_padding", TokenCount::non_padding},
                                          {"false", TokenCount::no},
                                          {"true", TokenCount::all}};
  return names;
}
const Names<CudaBackend>& names_of(CudaBackend /*type*/) {
  static const Names<CudaBackend> names = {{"nccl", CudaBackend::nccl}, {"gloo", CudaBackend::gloo}};
  return names;
}
const Names<StateDictType>& names_of(StateDictType /*type*/) {
  static const Names<StateDictType> names = {{"FULL_STATE_DICT", StateDictType::full},
                                             {"SHARDED_STATE_DICT", StateDictType::sharded}};
  return names;
}
const Names<WrapPolicy>& names_of(WrapPolicy /*type*/) {
  static const Names<WrapPolicy> names = {{"TRANSFORMER_BASED_WRAP", WrapPolicy::transformer_based},
                                          {"SIZE_BASED_WRAP", WrapPolicy::size_based},
                                          {"NO_WRAP", WrapPolicy::none}};
  return names;
}
const Names<OptimizerName>& names_of(OptimizerName /*type*/) {
  static const Names<OptimizerName> names = {
      {"adamw_torch", OptimizerName::adamw_torch}, {"adamw_torch_fused", OptimizerName::adamw_torch},
      {"adamw", OptimizerName::adamw_torch},       {"sgd", OptimizerName::sgd},
      {"adagrad", OptimizerName::adagrad},         {"rmsprop", OptimizerName::rmsprop},
      {"adafactor", OptimizerName::adafactor}};
  return names;
}

template <class T, class Visit>
  requires std::same_as<std::remove_const_t<T>, GradientAccumulationKwargs>
void for_each_argument(T& kwargs, const Visit& visit) {
  visit("num_steps", kwargs.num_steps, "");
  visit("sync_each_batch", kwargs.sync_each_batch, "");
}

template <class T, class Visit>
  requires std::same_as<std::remove_const_t<T>, AcceleratorConfig>
void for_each_argument(T& config, const Visit& visit) {
  visit("split_batches", config.split_batches, "");
  visit("dispatch_batches", config.dispatch_batches, "");
  visit("even_batches", config.even_batches, "");
  visit("gradient_accumulation_kwargs", config.gradient_accumulation_kwargs, "");
}

template <class T, class Visit>
  requires std::same_as<std::remove_const_t<T>, FsdpConfig>
void for_each_argument(T& config, const Visit& visit) {
  visit("reshard_after_forward", config.reshard_after_forward, "");
  visit("state_dict_type", config.state_dict_type, "");
  visit("auto_wrap_policy", config.auto_wrap_policy, "");
  visit("transformer_layer_cls_to_wrap", config.transformer_layer_cls_to_wrap, "");
  visit("min_num_params", config.min_num_params, "");
}

// Calls `visit(name, field, help)` for each argument. Reading, writing and listing arguments all use this
// table.
template <class T, class Visit>
  requires std::same_as<std::remove_const_t<T>, TrainingArguments>
void for_each_argument(T& a, const Visit& visit) {
  visit("output_dir", a.output_dir, "folder for checkpoints and logs");
  visit("do_train", a.do_train, "for the program: train");
  visit("do_eval", a.do_eval, "for the program: evaluate");
  visit("do_predict", a.do_predict, "for the program: predict");
  visit("per_device_train_batch_size", a.per_device_train_batch_size, "batch size per process");
  visit("per_device_eval_batch_size", a.per_device_eval_batch_size, "batch size per process in evaluation");
  visit("auto_find_batch_size", a.auto_find_batch_size,
        "begin again with a smaller batch size when memory runs out");
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
  visit("bf16_full_eval", a.bf16_full_eval, "evaluate outside of a training with weights in bfloat16");
  visit("fp16_full_eval", a.fp16_full_eval, "evaluate outside of a training with weights in float16");
  visit("use_cpu", a.use_cpu, "use the CPU even if there are GPUs");
  visit("tf32", a.tf32, "compute products in TF32 on CUDA devices; default: LibTorch's choice");
  visit("activation_checkpointing", a.activation_checkpointing,
        "recompute activations in backward to save memory");
  visit("gradient_checkpointing", a.gradient_checkpointing, "the former name of activation_checkpointing");
  visit("torch_empty_cache_steps", a.torch_empty_cache_steps,
        "steps after which unused memory of the device is freed; default: never");
  visit("seed", a.seed, "seed of all random number generators");
  visit("data_seed", a.data_seed, "seed of the order of samples; default: seed");
  visit("full_determinism", a.full_determinism, "use only deterministic algorithms");
  visit("dataloader_drop_last", a.dataloader_drop_last, "drop the last batch if it is not full");
  visit("dataloader_num_workers", a.dataloader_num_workers, "threads that read batches ahead");
  visit("dataloader_pin_memory", a.dataloader_pin_memory, "copy batches to page-locked memory");
  visit("dataloader_prefetch_factor", a.dataloader_prefetch_factor, "batches that each worker reads ahead");
  visit("train_sampling_strategy", a.train_sampling_strategy, "order of the training data");
  visit("remove_unused_columns", a.remove_unused_columns, "accepted without effect");
  visit("logging_strategy", a.logging_strategy, "when the loss is logged");
  visit("logging_steps", a.logging_steps, "steps between logs, or a fraction of all");
  visit("logging_first_step", a.logging_first_step, "log the first step too");
  visit("logging_nan_inf_filter", a.logging_nan_inf_filter, "leave NaN and infinite losses out of logs");
  visit("include_num_input_tokens_seen", a.include_num_input_tokens_seen, "log the number of input tokens");
  visit("skip_memory_metrics", a.skip_memory_metrics, "leave memory out of metrics");
  visit("report_to", a.report_to, "trackers, separated by commas");
  visit("logging_dir", a.logging_dir, "folder for trackers; default: runs in output_dir");
  visit("run_name", a.run_name, "name of this training for trackers");
  visit("disable_tqdm", a.disable_tqdm, "do not show progress");
  visit("eval_strategy", a.eval_strategy, "when to evaluate");
  visit("eval_steps", a.eval_steps, "steps between evaluations; default: logging_steps");
  visit("eval_delay", a.eval_delay, "epochs or steps before the first evaluation");
  visit("eval_on_start", a.eval_on_start, "evaluate before training");
  visit("prediction_loss_only", a.prediction_loss_only, "evaluate only the loss");
  visit("batch_eval_metrics", a.batch_eval_metrics, "compute metrics for each batch");
  visit("eval_do_concat_batches", a.eval_do_concat_batches, "give metrics all rows in one tensor");
  visit("include_for_metrics", a.include_for_metrics, "what metrics also get: inputs, loss");
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
  visit("accelerator_config", a.accelerator_config,
        "split_batches, dispatch_batches, even_batches, gradient_accumulation_kwargs: a JSON object or its "
        "file");
  visit("fsdp", a.fsdp, "shard the model over the processes; default: as the launcher says");
  visit("fsdp_config", a.fsdp_config, "how to shard it: a JSON object or its file");
  visit("ddp_backend", a.ddp_backend, "backend for tensors on CUDA devices; default: nccl");
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

// The keys of a group of arguments that is an object in JSON, as InertArgument has them.
template <class Group>
constexpr std::string_view kPrefix = "";
template <>
constexpr std::string_view kPrefix<AcceleratorConfig> = "accelerator_config.";
template <>
constexpr std::string_view kPrefix<GradientAccumulationKwargs> =
    "accelerator_config.gradient_accumulation_kwargs.";
template <>
constexpr std::string_view kPrefix<FsdpConfig> = "fsdp_config.";

template <class T>
constexpr bool kIsGroup = !kPrefix<T>.empty();

using OptionValues = std::map<std::string, NumberOrWord>;

template <class T>
Json to_value(const T& field) {
  if constexpr (kIsGroup<T>) {
    Json object = Json::object();
    for_each_argument(field, [&](const char* name, const auto& member, const char* /*help*/) {
      object[name] = to_value(member);
    });
    return object;
  } else if constexpr (std::is_same_v<T, OptionValues>) {
    Json object = Json::object();
    for (const auto& [name, option] : field)
      std::visit([&](const auto& value) { object[name] = value; }, option.value);
    return object;
  } else if constexpr (IsOptional<T>::value) {
    return field ? to_value(*field) : Json();
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& [name, value] : names_of(field))
      if (value == field) return name;
    return nullptr;
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return field.string();
  } else {
    return field;
  }
}

template <class Group>
void read_fields(const Json& object, Group& group, const std::string& where);

// transformers takes the file of such an object, too.
template <class Group>
void read_group(const Json& value, Group& group, const std::string& where) {
  group = Group();
  if (value.is_null()) return;
  if (!value.is_string()) return read_fields(value, group, where);
  const std::string file = value.get<std::string>();
  read_fields(Json::parse(read_file(file), nullptr, false), group, where + ": " + file);
}

NumberOrWord option_of(const Json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>();
  if (!value.is_number()) refuse(where, value.dump() + " is not a number or a word");
  return value.get<double>();
}

std::string string_of(const Json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_boolean()) refuse(where, value.dump() + " is not a string");
  return value.dump();  // resume_from_checkpoint: true
}

template <class T>
void from_value(const Json& value, T& field, const std::string& where) {
  if constexpr (kIsGroup<T>) {
    read_group(value, field, where);
  } else if constexpr (IsOptional<T>::value) {
    if (value.is_null()) return field.reset();
    typename IsOptional<T>::Value inner = {};
    from_value(value, inner, where);
    field = std::move(inner);
  } else if constexpr (std::is_enum_v<T>) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    for (const auto& [name, choice] : names_of(field)) {
      if (text == name) {
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
  } else if constexpr (std::is_same_v<T, OptionValues>) {
    field.clear();
    if (value.is_null()) return;
    if (!value.is_object()) refuse(where, value.dump() + " is not an object");
    // As in Python, null is the default of an option.
    for (const auto& [name, option] : value.items())
      if (!option.is_null()) field[name] = option_of(option, where + ": " + name);
  } else {
    field = value.is_null() ? std::string() : string_of(value, where);
  }
}

template <class Group>
std::vector<std::string> names_of_fields(Group& group) {
  std::vector<std::string> names;
  for_each_argument(
      group, [&](const char* name, auto& /*field*/, const char* /*help*/) { names.emplace_back(name); });
  return names;
}

// The keys of fsdp_config may have accelerate's prefix.
template <class Group>
std::string_view name_of(std::string_view key) {
  constexpr std::string_view kFsdp = "fsdp_";
  if (std::is_same_v<Group, FsdpConfig> && key.starts_with(kFsdp)) key.remove_prefix(kFsdp.size());
  return present_name(key);
}

// Transformers 4 had words for fsdp, and for none an empty list or text.
Json without_former_words(std::string_view name, const Json& value, const std::string& where) {
  if (name != "fsdp" || !(value.is_string() || value.is_array())) return value;
  if (value == "" || value == Json::array()) return {};
  refuse(where, value.dump() + " is not true or false",
         "full_shard is true; shard_grad_op is true with reshard_after_forward false in fsdp_config");
}

template <class Group>
void read_field(const std::string& key, const Json& value, Group& group, const std::string& where) {
  const std::string_view name = name_of<Group>(key);
  if (const auto* inert = detail::find_inert_argument(std::string(kPrefix<Group>).append(name)))
    return detail::require_inert(*inert, value, where);
  bool is_known = false;
  for_each_argument(group, [&](const char* argument, auto& field, const char* /*help*/) {
    if (name != argument) return;
    is_known = true;
    from_value(without_former_words(name, value, where), field, where);
  });
  if (!is_known) refuse(where, "is not a training argument", did_you_mean(key, names_of_fields(group)));
}

// Whether the object has a value for this name that is not null and not the default.
bool changes(const Json& object, std::string_view name) {
  static const Json defaults = Json::parse(to_json(TrainingArguments()));
  const auto entry = object.find(name);
  return entry != object.end() && !entry->is_null() && *entry != defaults.value(name, Json());
}

// Transformers 4 writes both names of an argument, such as warmup_steps 0 beside warmup_ratio: the default
// gives way, and a former name to the present one.
bool gives_way(const Json& object, std::string_view key) {
  if (const std::string_view present = present_name(key); present != key)
    return object[key].is_null() || changes(object, present);
  return !changes(object, key) && std::ranges::any_of(former_names(), [&](const auto& names) {
    return names.second == key && object.contains(names.first) && !object[names.first].is_null();
  });
}

template <class Group>
void read_fields(const Json& object, Group& group, const std::string& where) {
  if (!object.is_object()) refuse(where, "is not a JSON object");
  for (const auto& [key, value] : object.items())
    if (!gives_way(object, key)) read_field(key, value, group, where + ": " + key);
}

// Takes what Python takes, such as .5 and +1e-3, which are not JSON.
template <class Number>
Json number_of_flag(const std::string& text) {
  if constexpr (std::integral<Number>) {
    if (const auto number = parse_integer(text)) return *number;
  } else {
    if (const auto number = parse_number(text)) return *number;
  }
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
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
  } else if constexpr (std::is_arithmetic_v<T>) {
    return number_of_flag<T>(text);
  } else if constexpr (std::is_same_v<T, OptionValues> || kIsGroup<T>) {
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
  std::ranges::replace(dashed, '_', '-');
  return dashed == name ? "--" + name : "--" + name + ",--" + dashed;
}

// A flag that needs no value is true without one. In the help this would be shown as its default.
void make_true_without_value(CLI::App& app) {
  for (CLI::Option* option : app.get_options({}))
    if (option->get_items_expected_min() == 0) option->default_str("true");
}

void add_inert_flag(CLI::App& app, const detail::InertArgument& argument) {
  const std::string name(argument.name);
  app.add_option_function<std::vector<std::string>>(
         spellings_of(name),
         [&argument, flag = "--" + name](const std::vector<std::string>& texts) {
           detail::require_inert_text(argument, texts.front(), flag);
         })
      ->expected(0, 1)
      ->allow_extra_args(false)
      ->take_last()
      ->trigger_on_parse();
}

template <class Field>
void add_flag(CLI::App& app, const std::string& name, Field& field, const char* help) {
  constexpr bool kIsTruth = std::is_same_v<Field, bool> || std::is_same_v<Field, std::optional<bool>>;
  CLI::Option* option = app.add_option_function<std::vector<std::string>>(
      spellings_of(name),
      [&field, name, flag = "--" + name](const std::vector<std::string>& texts) {
        const Json value = value_of_flag(field, texts.front());
        from_value(without_former_words(name, value, flag), field, flag);
      },
      help);
  // Words behind the value are not the flag's.
  option->expected(kIsTruth ? 0 : 1, 1)->allow_extra_args(false)->take_last()->trigger_on_parse();
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
}

// Those of arguments without a field.
void add_inert_flags(CLI::App& app) {
  for (const detail::InertArgument& argument : detail::inert_arguments())
    if (argument.name.find('.') == std::string_view::npos) add_inert_flag(app, argument);
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
  detail::require_in(detail::Range::positive, value, name);
}

// A number of steps, or a fraction of all.
void require_steps(const char* name, double value) {
  require_positive(name, value);
  if (value > 1 && value != std::floor(value))
    refuse_argument(name, "must be a whole number of steps, or less than 1: a fraction of all",
                    fmt::format("write {}", std::floor(value)));
}

// Fractions as whole numbers, with transformers' precision: 0.6 is a multiple of 0.2.
void require_multiple(double save_steps, double eval_steps) {
  const bool are_fractions = save_steps < 1;
  if (are_fractions != (eval_steps < 1))
    refuse_argument("load_best_model_at_end", "needs save_steps to be a multiple of eval_steps",
                    "give both as numbers of steps, or both as fractions of all");
  const auto whole = [&](double steps) { return are_fractions ? std::round(steps * 1e6) : steps; };
  if (std::fmod(whole(save_steps), whole(eval_steps)) != 0)
    refuse_argument("load_best_model_at_end", "needs save_steps to be a multiple of eval_steps");
}

// The ranges that hold whatever other arguments say. An absent value has none.
void require_ranges(const TrainingArguments& a) {
  using detail::Range;
  struct Ranged {
    const char* name;
    std::optional<double> value;
    Range range;
  };
  for (const auto& [name, value, range] : std::initializer_list<Ranged>{
           {"per_device_train_batch_size", a.per_device_train_batch_size, Range::positive},
           {"per_device_eval_batch_size", a.per_device_eval_batch_size, Range::positive},
           {"gradient_accumulation_steps", a.gradient_accumulation_steps, Range::positive},
           {"learning_rate", a.learning_rate, Range::not_negative},
           {"weight_decay", a.weight_decay, Range::not_negative},
           {"adam_beta1", a.adam_beta1, Range::below_one},
           {"adam_beta2", a.adam_beta2, Range::below_one},
           {"adam_epsilon", a.adam_epsilon, Range::not_negative},
           {"warmup_steps", a.warmup_steps, Range::not_negative},
           {"label_smoothing_factor", a.label_smoothing_factor, Range::below_one},
           {"torch_empty_cache_steps", a.torch_empty_cache_steps, Range::positive},
           {"dataloader_num_workers", a.dataloader_num_workers, Range::not_negative},
           {"dataloader_prefetch_factor", a.dataloader_prefetch_factor, Range::positive},
           {"save_total_limit", a.save_total_limit, Range::positive},
           {"fsdp_config: min_num_params", a.fsdp_config.min_num_params, Range::not_negative},
           {"ddp_bucket_cap_mb", a.ddp_bucket_cap_mb, Range::positive},
           {"ddp_timeout", a.ddp_timeout, Range::positive},
       }) {
    if (value) detail::require_in(range, *value, name);
  }
}

// All are written to checkpoints as JSON.
void require_utf8(const TrainingArguments& a) {
  for_each_argument(a, [](const char* name, const auto& field, const char* /*help*/) {
    try {
      (void)to_value(field).dump();
    } catch (const Json::type_error&) {
      refuse_argument(name, "is not UTF-8");
    }
  });
}

// An absent output_dir is the default.
void complete_folders(TrainingArguments& a) {
  if (a.output_dir.empty()) a.output_dir = TrainingArguments().output_dir;
  if (a.logging_dir.empty()) a.logging_dir = a.output_dir / "runs";
  const Environment environment = Environment::of_process();
  for (std::filesystem::path* folder : {&a.output_dir, &a.logging_dir})
    *folder = expand_home(folder->native(), environment);
}

}  // namespace

TrainingArguments completed(TrainingArguments arguments) {
  TrainingArguments& a = arguments;
  if (const auto& num_steps = a.accelerator_config.gradient_accumulation_kwargs.num_steps) {
    if (a.gradient_accumulation_steps != 1 && a.gradient_accumulation_steps != *num_steps)
      refuse_argument("gradient_accumulation_steps, accelerator_config: num_steps", "exclude each other",
                      "set one of them");
    a.gradient_accumulation_steps = *num_steps;
  }
  require_ranges(a);
  if (a.max_steps < 0) require_positive("num_train_epochs", a.num_train_epochs);
  if (a.max_steps == 0)
    refuse_argument("max_steps", "is 0", "give a number of steps, or -1 to train by epochs");
  for (const std::string& kind : a.include_for_metrics)
    if (kind != "inputs" && kind != "loss")
      refuse_argument("include_for_metrics", "'" + kind + "' is not one of its values",
                      "use inputs, loss or both");
  if (a.save_in_background && a.save_only_model)
    refuse_argument("save_in_background, save_only_model", "exclude each other", "choose one");
  if (a.bf16 && a.fp16) refuse_argument("bf16, fp16", "exclude each other", "choose one");
  if (a.bf16_full_eval && a.fp16_full_eval)
    refuse_argument("bf16_full_eval, fp16_full_eval", "exclude each other", "choose one");
  if (a.logging_strategy == IntervalStrategy::steps) require_steps("logging_steps", a.logging_steps);
  if (a.save_strategy == SaveStrategy::steps) require_steps("save_steps", a.save_steps);
  if (a.memory_save_steps != 0) require_steps("memory_save_steps", a.memory_save_steps);
  if (!a.eval_steps && a.eval_strategy == IntervalStrategy::steps) a.eval_steps = a.logging_steps;
  if (a.eval_steps) require_positive("eval_steps", *a.eval_steps);
  if (a.eval_strategy == IntervalStrategy::steps) require_steps("eval_steps", *a.eval_steps);
  a.activation_checkpointing = a.gradient_checkpointing =
      a.activation_checkpointing || a.gradient_checkpointing;
  complete_folders(a);
  require_utf8(a);

  if (a.load_best_model_at_end) {
    if (a.save_strategy != SaveStrategy::best) {
      const bool alike =
          (a.save_strategy == SaveStrategy::epoch && a.eval_strategy == IntervalStrategy::epoch) ||
          (a.save_strategy == SaveStrategy::steps && a.eval_strategy == IntervalStrategy::steps);
      if (!alike)
        refuse_argument("load_best_model_at_end", "needs save_strategy and eval_strategy to be the same",
                        "set both to epoch or both to steps, or save_strategy to best");
      if (a.save_strategy == SaveStrategy::steps) require_multiple(a.save_steps, *a.eval_steps);
    }
    if (a.metric_for_best_model.empty()) a.metric_for_best_model = "loss";
  }
  if (a.save_strategy == SaveStrategy::best && a.metric_for_best_model.empty())
    refuse_argument("save_strategy", "best needs metric_for_best_model");
  if (a.lr_scheduler_type == SchedulerType::reduce_lr_on_plateau ||
      a.lr_scheduler_type == SchedulerType::greedy) {
    if (a.eval_strategy == IntervalStrategy::no)
      refuse_argument("lr_scheduler_type",
                      to_value(a.lr_scheduler_type).get<std::string>() + " needs an eval_strategy");
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
  // A program that takes the rest may have flags of its own under these names.
  if (rest == nullptr) add_inert_flags(app);
  make_true_without_value(app);
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
  TrainingArguments arguments = defaults;
  read_fields(Json::parse(read_file(file), nullptr, false), arguments, file.string());
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
