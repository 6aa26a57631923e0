// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kFsdp = "FSDP";

}  // namespace

// clang-format off
std::vector<SettingSpec> fsdp_rows() {
  return {
      {.name = "fsdp_config", .type = ValueType::section, .in_file = true, .since = "0.7.0", .otherwise = "{}",
       .help = "Fully sharded data parallel training."},
      {.name = "fsdp_version", .type = ValueType::integer, .in_file = true, .section = "fsdp_config", .since = "1.6.0", .otherwise = "1", .least = 1, .most = 2, .flags = {accelerate("--fsdp_version")},
       .environment = "FSDP_VERSION", .group = kFsdp, .help = "Version of FSDP."},
      {.name = "fsdp_sharding_strategy", .in_file = true, .section = "fsdp_config", .since = "0.12.0", .otherwise = "\"FULL_SHARD\"", .allowed = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"}, .any_case = true, .numbered = true, .flags = {accelerate("--fsdp_sharding_strategy")},
       .environment = "FSDP_SHARDING_STRATEGY", .group = kFsdp, .help = "Version 1: what is sharded; fsdp_reshard_after_forward says it too."},
      {.name = "fsdp_reshard_after_forward", .type = ValueType::word_or_truth, .in_file = true, .section = "fsdp_config", .since = "1.6.0", .otherwise = "true", .allowed = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"}, .any_case = true, .flags = {accelerate("--fsdp_reshard_after_forward")},
       .environment = "FSDP_RESHARD_AFTER_FORWARD", .group = kFsdp, .help = "Version 2: whether parameters are freed after the forward pass; version 1: a sharding strategy."},
      {.name = "fsdp_offload_params", .type = ValueType::boolean, .in_file = true, .section = "fsdp_config", .since = "0.12.0", .otherwise = "false", .flags = {accelerate("--fsdp_offload_params")},
       .environment = "FSDP_OFFLOAD_PARAMS", .group = kFsdp, .help = "Keep parameters and gradients on the CPU."},
      {.name = "fsdp_auto_wrap_policy", .in_file = true, .section = "fsdp_config", .since = "0.11.0", .allowed = {"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"}, .any_case = true, .flags = {accelerate("--fsdp_auto_wrap_policy")},
       .environment = "FSDP_AUTO_WRAP_POLICY", .group = kFsdp, .help = "Which modules are sharded by themselves."},
      {.name = "fsdp_transformer_layer_cls_to_wrap", .in_file = true, .section = "fsdp_config", .since = "0.12.0", .flags = {accelerate("--fsdp_transformer_layer_cls_to_wrap")},
       .environment = "FSDP_TRANSFORMER_CLS_TO_WRAP", .group = kFsdp, .help = "TRANSFORMER_BASED_WRAP: names of the layer classes, separated by commas."},
      {.name = "fsdp_min_num_params", .type = ValueType::integer, .in_file = true, .section = "fsdp_config", .since = "0.12.0", .otherwise = "100000000", .least = 0, .flags = {accelerate("--fsdp_min_num_params")},
       .environment = "FSDP_MIN_NUM_PARAMS", .group = kFsdp, .help = "SIZE_BASED_WRAP: the fewest parameters of a module."},
      {.name = "fsdp_backward_prefetch", .in_file = true, .section = "fsdp_config", .former = {"fsdp_backward_prefetch_policy"}, .since = "0.26.0", .allowed = {"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"}, .any_case = true, .flags = {accelerate("--fsdp_backward_prefetch")},
       .environment = "FSDP_BACKWARD_PREFETCH", .group = kFsdp, .help = "Version 1: when the next parameters are fetched in the backward pass."},
      {.name = "fsdp_state_dict_type", .in_file = true, .section = "fsdp_config", .since = "0.12.0", .allowed = {"FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT"}, .any_case = true, .flags = {accelerate("--fsdp_state_dict_type")},
       .environment = "FSDP_STATE_DICT_TYPE", .group = kFsdp, .help = "How checkpoints are laid out; version 2 has no LOCAL_STATE_DICT."},
      {.name = "fsdp_forward_prefetch", .type = ValueType::boolean, .in_file = true, .section = "fsdp_config", .since = "0.21.0", .otherwise = "false", .flags = {accelerate("--fsdp_forward_prefetch")},
       .environment = "FSDP_FORWARD_PREFETCH", .group = kFsdp, .help = "Version 1: fetch the next parameters in the forward pass too."},
      {.name = "fsdp_use_orig_params", .type = ValueType::boolean, .in_file = true, .section = "fsdp_config", .since = "0.21.0", .otherwise = "true", .flags = {accelerate("--fsdp_use_orig_params")},
       .environment = "FSDP_USE_ORIG_PARAMS", .group = kFsdp, .help = "Version 1: the optimizer sees the original parameters."},
      {.name = "fsdp_cpu_ram_efficient_loading", .type = ValueType::boolean, .in_file = true, .section = "fsdp_config", .since = "0.24.0", .otherwise = "true", .flags = {accelerate("--fsdp_cpu_ram_efficient_loading")},
       .environment = "FSDP_CPU_RAM_EFFICIENT_LOADING", .group = kFsdp, .help = "Only the first process loads the checkpoint; needs fsdp_sync_module_states."},
      {.name = "fsdp_sync_module_states", .type = ValueType::boolean, .in_file = true, .section = "fsdp_config", .since = "0.21.0", .otherwise = "true", .flags = {accelerate("--fsdp_sync_module_states")},
       .environment = "FSDP_SYNC_MODULE_STATES", .group = kFsdp, .help = "Version 1: every process starts with the parameters of the first."},
      {.name = "fsdp_activation_checkpointing", .type = ValueType::boolean, .in_file = true, .section = "fsdp_config", .since = "0.31.0", .otherwise = "false", .flags = {accelerate("--fsdp_activation_checkpointing")},
       .environment = "FSDP_ACTIVATION_CHECKPOINTING", .group = kFsdp, .help = "Compute activations again in the backward pass."},
      {.name = "fsdp_activation_checkpointing_offload", .type = ValueType::boolean, .in_file = true, .section = "fsdp_config", .since = "1.15.0", .otherwise = "false", .flags = {accelerate("--fsdp_activation_checkpointing_offload")},
       .environment = "FSDP_ACTIVATION_CHECKPOINTING_OFFLOAD", .group = kFsdp, .help = "Version 2: keep the checkpointed activations on the CPU."},
      {.name = "fsdp_ignored_modules", .in_file = true, .section = "fsdp_config",
       .since = "1.10.0", .environment = "FSDP_IGNORED_MODULES", .group = kFsdp, .help = "Regular expression of the modules that are not sharded."},
  };
}
// clang-format on

}  // namespace acc::launcher
