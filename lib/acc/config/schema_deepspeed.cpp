// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kDeepSpeed = "DeepSpeed";

}  // namespace

// clang-format off
std::vector<SettingSpec> deepspeed_rows() {
  return {
      {.name = "deepspeed_config", .type = ValueType::section, .in_file = true, .since = "0.4.0", .otherwise = "{}",
       .help = "DeepSpeed."},
      {.name = "deepspeed_config_file", .in_file = true, .section = "deepspeed_config", .since = "0.10.0", .flags = {accelerate("--deepspeed_config_file")},
       .environment = "ACCELERATE_DEEPSPEED_CONFIG_FILE", .group = kDeepSpeed, .help = "DeepSpeed's own JSON file, which then says everything that it holds."},
      {.name = "zero_stage", .type = ValueType::integer, .in_file = true, .section = "deepspeed_config", .since = "0.4.0", .least = 0, .most = 3, .flags = {accelerate("--zero_stage")},
       .environment = "ACCELERATE_DEEPSPEED_ZERO_STAGE", .group = kDeepSpeed, .help = "What ZeRO shards: 0 nothing, 1 optimizer states, 2 gradients too, 3 parameters too."},
      {.name = "offload_optimizer_device", .in_file = true, .section = "deepspeed_config", .since = "0.4.0", .allowed = {"none", "cpu", "nvme"}, .any_case = true, .flags = {accelerate("--offload_optimizer_device")},
       .environment = "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", .group = kDeepSpeed, .help = "Where optimizer states are kept (stages 2 and 3)."},
      {.name = "offload_param_device", .in_file = true, .section = "deepspeed_config", .since = "0.10.0", .allowed = {"none", "cpu", "nvme"}, .any_case = true, .flags = {accelerate("--offload_param_device")},
       .environment = "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE", .group = kDeepSpeed, .help = "Where parameters are kept (stage 3)."},
      {.name = "offload_optimizer_nvme_path", .in_file = true, .section = "deepspeed_config", .since = "0.20.0", .flags = {accelerate("--offload_optimizer_nvme_path")},
       .environment = "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_NVME_PATH", .group = kDeepSpeed, .help = "Folder for optimizer states on NVMe."},
      {.name = "offload_param_nvme_path", .in_file = true, .section = "deepspeed_config", .since = "0.20.0", .flags = {accelerate("--offload_param_nvme_path")},
       .environment = "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_NVME_PATH", .group = kDeepSpeed, .help = "Folder for parameters on NVMe."},
      {.name = "gradient_accumulation_steps", .type = ValueType::integer, .in_file = true, .section = "deepspeed_config", .since = "0.4.0", .allowed = {"auto"}, .least = 1, .flags = {accelerate("--gradient_accumulation_steps")},
       .environment = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS", .group = kDeepSpeed, .help = "Batches whose gradients are added up before a step, or auto."},
      {.name = "gradient_clipping", .type = ValueType::number, .in_file = true, .section = "deepspeed_config", .since = "0.10.0", .allowed = {"auto"}, .flags = {accelerate("--gradient_clipping")},
       .environment = "ACCELERATE_GRADIENT_CLIPPING", .group = kDeepSpeed, .help = "Largest norm of the gradients, or auto."},
      {.name = "zero3_init_flag", .type = ValueType::boolean, .in_file = true, .section = "deepspeed_config", .since = "0.10.0", .flags = {accelerate("--zero3_init_flag")},
       .environment = "ACCELERATE_DEEPSPEED_ZERO3_INIT", .group = kDeepSpeed, .help = "Build the model sharded from the start (stage 3)."},
      {.name = "zero3_save_16bit_model", .type = ValueType::boolean, .in_file = true, .section = "deepspeed_config", .since = "0.10.0", .flags = {accelerate("--zero3_save_16bit_model")},
       .environment = "ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL", .group = kDeepSpeed, .help = "Gather 16-bit weights when saving (stage 3)."},
      {.name = "deepspeed_hostfile", .in_file = true, .section = "deepspeed_config", .since = "0.11.0", .flags = {accelerate("--deepspeed_hostfile")},
       .group = kDeepSpeed, .help = "Hosts and their slots, for several machines."},
      {.name = "deepspeed_exclusion_filter", .in_file = true, .section = "deepspeed_config", .since = "0.11.0", .flags = {accelerate("--deepspeed_exclusion_filter")},
       .group = kDeepSpeed, .help = "Hosts and slots to leave out, as in worker-1@worker-2:0,1."},
      {.name = "deepspeed_inclusion_filter", .in_file = true, .section = "deepspeed_config", .since = "0.11.0", .flags = {accelerate("--deepspeed_inclusion_filter")},
       .group = kDeepSpeed, .help = "Hosts and slots to use, as in worker-1@worker-2:0,1."},
      {.name = "deepspeed_multinode_launcher", .in_file = true, .section = "deepspeed_config", .since = "0.11.0", .allowed = {"pdsh", "standard", "openmpi", "mvapich", "mpich", "impi", "nossh", "slurm"}, .any_case = true, .flags = {accelerate("--deepspeed_multinode_launcher")},
       .group = kDeepSpeed, .help = "How workers of several machines are started; standard: each machine starts its own."},
      {.name = "deepspeed_moe_layer_cls_names", .in_file = true, .section = "deepspeed_config", .since = "0.30.0", .flags = {accelerate("--deepspeed_moe_layer_cls_names")},
       .environment = "ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES", .group = kDeepSpeed, .help = "Names of the mixture-of-experts layer classes, separated by commas."},
  };
}
// clang-format on

}  // namespace acc::launcher
