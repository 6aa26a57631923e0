// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/inert_arguments.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc::detail {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kNone = "[null]";
constexpr std::string_view kOff = "[null, false]";
constexpr std::string_view kAny;

constexpr std::string_view kRequestedByModule = "set it in the module's activation_checkpointing_enable()";
constexpr std::string_view kUncompiled = "LibTorch does not compile modules: leave it out";
constexpr std::string_view kNoXla = "there is no XLA: leave it out";

constexpr auto kArguments = std::to_array<InertArgument>({
    {"optim_target_modules", kNone, "only GaLore and APOLLO use it: override create_optimizer"},
    // The loss is the mean of each batch, as in transformers for a model whose forward takes no loss
    // arguments.
    {"average_tokens_across_devices", kAny, ""},
    {"activation_checkpointing_kwargs", R"([null, {}, {"use_reentrant": false}])", kRequestedByModule},
    {"gradient_checkpointing_kwargs", R"([null, {}, {"use_reentrant": false}])", kRequestedByModule},
    {"torch_compile", kOff, kUncompiled},
    {"torch_compile_backend", kNone, kUncompiled},
    {"torch_compile_mode", kNone, kUncompiled},
    {"use_liger_kernel", kOff, "call the kernels in the module's forward"},
    {"liger_kernel_config", kNone, "call the kernels in the module's forward"},
    {"use_cache", kOff, "keep the cache in the module"},
    {"neftune_noise_alpha", kNone, "add the noise in the module's forward"},
    {"log_on_each_node", kAny, ""},
    {"log_level", kAny, ""},
    {"log_level_replica", kAny, ""},
    {"project", kAny, ""},
    {"trackio_space_id", kAny, ""},
    {"trackio_bucket_id", kAny, ""},
    {"trackio_static_space_id", kAny, ""},
    {"eval_use_gather_object", kOff, "compute_loss returns tensors"},
    // Each batch of predictions leaves the device at once.
    {"eval_accumulation_steps", kAny, ""},
    {"push_to_hub", kOff, "upload output_dir after the training"},
    {"hub_token", kAny, ""},
    {"hub_private_repo", kAny, ""},
    {"hub_model_id", kAny, ""},
    {"hub_strategy", kAny, ""},
    {"hub_always_push", kAny, ""},
    {"hub_revision", kAny, ""},
    // They are always restored.
    {"restore_callback_states_from_checkpoint", kAny, ""},
    {"accelerator_config.use_seedable_sampler", "[true]", "orders are those of the seedable sampler"},
    {"accelerator_config.non_blocking", kAny, ""},
    {"accelerator_config.use_configured_state", kOff, "the Trainer creates its own Accelerator"},
    {"accelerator_config.gradient_accumulation_kwargs.adjust_scheduler", kAny, ""},
    {"accelerator_config.gradient_accumulation_kwargs.sync_with_dataloader", kAny, ""},
    {"parallelism_config", kNone, "shard the model: fsdp"},
    // Workers are threads.
    {"dataloader_persistent_workers", kAny, ""},
    {"dataloader_multiprocessing_context", kAny, ""},
    {"dataloader_in_order", "[true]", "batches always come in order"},
    {"label_names", R"([null, ["labels"], ["label"]])",
     "labels are the last tensor of a batch; for others override compute_loss"},
    {"length_column_name", kAny, ""},
    {"fsdp_config.version", "[2]", "use version 2 and its keys"},
    {"fsdp_config.cpu_offload", kOff, "parameters stay on their device"},
    {"fsdp_config.activation_checkpointing", kOff, "use the argument activation_checkpointing"},
    {"fsdp_config.cpu_ram_efficient_loading", kAny, ""},
    {"fsdp_config.xla", kOff, kNoXla},
    {"fsdp_config.xla_fsdp_v2", kOff, kNoXla},
    {"fsdp_config.xla_fsdp_settings", kAny, ""},
    {"fsdp_config.xla_fsdp_grad_ckpt", kOff, kNoXla},
    {"deepspeed", kNone, "shard the model: fsdp"},
    {"debug", R"([null, "", []])", "check tensors in compute_loss"},
    {"local_rank", kAny, ""},
});

bool is_inert(const InertArgument& argument, const Json& value) {
  if (argument.values == kAny) return true;
  const Json values = Json::parse(argument.values);
  return std::ranges::find(values, value) != values.end();
}

Json value_of(const std::string& text) {
  if (to_lower(text) == "none") return {};
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

}  // namespace

std::span<const InertArgument> inert_arguments() {
  return kArguments;
}

const InertArgument* find_inert_argument(std::string_view name) {
  const auto* match = std::ranges::find(kArguments, name, &InertArgument::name);
  return match == kArguments.end() ? nullptr : match;
}

void require_inert(const InertArgument& argument, const Json& value, const std::string& where) {
  if (is_inert(argument, value)) return;
  throw Error({.kind = ErrorKind::config,
               .what = value.dump() + " is not supported",
               .where = where,
               .hint = std::string(argument.hint)});
}

void require_inert_text(const InertArgument& argument, const std::string& text, const std::string& where) {
  if (const auto truth = parse_truth(text); truth && is_inert(argument, *truth)) return;
  require_inert(argument, value_of(text), where);
}

}  // namespace acc::detail
