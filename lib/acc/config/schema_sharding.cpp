// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kFsdp = "FSDP";
constexpr std::string_view kDeepSpeed = "DeepSpeed";
constexpr std::string_view kMegatron = "Megatron-LM";
constexpr std::string_view kParallelism = "Parallel dimensions";

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

std::vector<SettingSpec> megatron_rows() {
  return {
      {.name = "megatron_lm_config", .type = ValueType::section, .in_file = true, .since = "0.14.0", .otherwise = "{}",
       .help = "Megatron-LM."},
      {.name = "megatron_lm_tp_degree", .type = ValueType::integer, .in_file = true, .section = "megatron_lm_config", .since = "0.14.0", .otherwise = "1", .least = 1, .flags = {accelerate("--megatron_lm_tp_degree")},
       .environment = "MEGATRON_LM_TP_DEGREE", .group = kMegatron, .help = "Degree of tensor parallelism."},
      {.name = "megatron_lm_pp_degree", .type = ValueType::integer, .in_file = true, .section = "megatron_lm_config", .since = "0.14.0", .otherwise = "1", .least = 1, .flags = {accelerate("--megatron_lm_pp_degree")},
       .environment = "MEGATRON_LM_PP_DEGREE", .group = kMegatron, .help = "Degree of pipeline parallelism."},
      {.name = "megatron_lm_num_micro_batches", .type = ValueType::integer, .in_file = true, .section = "megatron_lm_config", .since = "0.14.0", .least = 1, .flags = {accelerate("--megatron_lm_num_micro_batches")},
       .environment = "MEGATRON_LM_NUM_MICRO_BATCHES", .group = kMegatron, .help = "Micro batches of a pipeline."},
      {.name = "megatron_lm_gradient_clipping", .type = ValueType::number, .in_file = true, .section = "megatron_lm_config", .since = "0.14.0", .otherwise = "1.0", .flags = {accelerate("--megatron_lm_gradient_clipping")},
       .environment = "MEGATRON_LM_GRADIENT_CLIPPING", .group = kMegatron, .help = "Largest norm of the gradients; 0 clips nothing."},
      {.name = "megatron_lm_sequence_parallelism", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "0.14.0", .flags = {accelerate("--megatron_lm_sequence_parallelism")},
       .environment = "MEGATRON_LM_SEQUENCE_PARALLELISM", .group = kMegatron, .help = "Split sequences among the tensor-parallel processes."},
      {.name = "megatron_lm_recompute_activations", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "0.14.0", .flags = {accelerate("--megatron_lm_recompute_activations")},
       .environment = "MEGATRON_LM_RECOMPUTE_ACTIVATIONS", .group = kMegatron, .help = "Compute activations again in the backward pass, where it pays."},
      {.name = "megatron_lm_use_distributed_optimizer", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "0.14.0", .flags = {accelerate("--megatron_lm_use_distributed_optimizer")},
       .environment = "MEGATRON_LM_USE_DISTRIBUTED_OPTIMIZER", .group = kMegatron, .help = "Shard optimizer states among the data-parallel processes."},
      {.name = "megatron_lm_use_custom_fsdp", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .otherwise = "false", .flags = {accelerate("--megatron_lm_use_custom_fsdp")},
       .environment = "MEGATRON_LM_USE_CUSTOM_FSDP", .group = kMegatron, .help = "Shard the model with Megatron's own FSDP."},
      {.name = "megatron_lm_no_load_optim", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .otherwise = "false", .flags = {accelerate("--megatron_lm_no_load_optim")},
       .environment = "MEGATRON_LM_NO_LOAD_OPTIM", .group = kMegatron, .help = "Do not load optimizer states from checkpoints."},
      {.name = "megatron_lm_no_save_optim", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .otherwise = "false", .flags = {accelerate("--megatron_lm_no_save_optim")},
       .environment = "MEGATRON_LM_NO_SAVE_OPTIM", .group = kMegatron, .help = "Do not save optimizer states in checkpoints."},
      {.name = "megatron_lm_eod_mask_loss", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .otherwise = "false", .flags = {accelerate("--megatron_lm_eod_mask_loss")},
       .environment = "MEGATRON_LM_EOD_MASK_LOSS", .group = kMegatron, .help = "Leave tokens that end a document out of the loss."},
      {.name = "megatron_lm_overlap_cpu_optimizer_d2h_h2d", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .otherwise = "false", .flags = {accelerate("--megatron_lm_overlap_cpu_optimizer_d2h_h2d")},
       .environment = "MEGATRON_LM_OVERLAP_CPU_OPTIMIZER_D2H_H2D", .group = kMegatron, .help = "Overlap the CPU optimizer's steps with its copies."},
      {.name = "megatron_lm_optimizer_cpu_offload", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .otherwise = "false", .flags = {accelerate("--megatron_lm_optimizer_cpu_offload")},
       .environment = "MEGATRON_LM_OPTIMIZER_CPU_OFFLOAD", .group = kMegatron, .help = "Keep optimizer states on the CPU."},
      {.name = "megatron_lm_use_precision_aware_optimizer", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .otherwise = "false", .flags = {accelerate("--megatron_lm_use_precision_aware_optimizer")},
       .environment = "MEGATRON_LM_USE_PRECISION_AWARE_OPTIMIZER", .group = kMegatron, .help = "Keep optimizer states in lower precision."},
      {.name = "megatron_lm_decoder_last_pipeline_num_layers", .type = ValueType::integer, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .least = 0, .flags = {accelerate("--megatron_lm_decoder_last_pipeline_num_layers")},
       .environment = "MEGATRON_LM_DECODER_LAST_PIPELINE_NUM_LAYERS", .group = kMegatron, .help = "Layers in the decoder's last pipeline stage."},
      {.name = "megatron_lm_recompute_granularity", .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .flags = {accelerate("--megatron_lm_recompute_granularity")},
       .environment = "MEGATRON_LM_RECOMPUTE_GRANULARITY", .group = kMegatron, .help = "What is computed again: full or selective."},
      {.name = "megatron_lm_recompute_method", .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .flags = {accelerate("--megatron_lm_recompute_method")},
       .environment = "MEGATRON_LM_RECOMPUTE_METHOD", .group = kMegatron, .help = "Which layers are computed again: uniform or block."},
      {.name = "megatron_lm_recompute_num_layers", .type = ValueType::integer, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .least = 0, .flags = {accelerate("--megatron_lm_recompute_num_layers")},
       .environment = "MEGATRON_LM_RECOMPUTE_NUM_LAYERS", .group = kMegatron, .help = "Layers that are computed again."},
      {.name = "megatron_lm_attention_backend", .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .flags = {accelerate("--megatron_lm_attention_backend")},
       .environment = "MEGATRON_LM_ATTENTION_BACKEND", .group = kMegatron, .help = "Implementation of attention."},
      {.name = "megatron_lm_expert_model_parallel_size", .type = ValueType::integer, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .least = 1, .flags = {accelerate("--megatron_lm_expert_model_parallel_size")},
       .environment = "MEGATRON_LM_EXPERT_MODEL_PARALLEL_SIZE", .group = kMegatron, .help = "Degree of expert parallelism."},
      {.name = "megatron_lm_context_parallel_size", .type = ValueType::integer, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .least = 1, .flags = {accelerate("--megatron_lm_context_parallel_size")},
       .environment = "MEGATRON_LM_CONTEXT_PARALLEL_SIZE", .group = kMegatron, .help = "Degree of context parallelism."},
      {.name = "megatron_lm_attention_dropout", .type = ValueType::number, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .flags = {accelerate("--megatron_lm_attention_dropout")},
       .environment = "MEGATRON_LM_ATTENTION_DROPOUT", .group = kMegatron, .help = "Dropout of attention."},
      {.name = "megatron_lm_hidden_dropout", .type = ValueType::number, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .flags = {accelerate("--megatron_lm_hidden_dropout")},
       .environment = "MEGATRON_LM_HIDDEN_DROPOUT", .group = kMegatron, .help = "Dropout of hidden states."},
      {.name = "megatron_lm_attention_softmax_in_fp32", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .flags = {accelerate("--megatron_lm_attention_softmax_in_fp32")},
       .environment = "MEGATRON_LM_ATTENTION_SOFTMAX_IN_FP32", .group = kMegatron, .help = "Compute attention's softmax in float32."},
      {.name = "megatron_lm_expert_tensor_parallel_size", .type = ValueType::integer, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .least = 1, .flags = {accelerate("--megatron_lm_expert_tensor_parallel_size")},
       .environment = "MEGATRON_LM_EXPERT_TENSOR_PARALLEL_SIZE", .group = kMegatron, .help = "Degree of tensor parallelism in expert layers."},
      {.name = "megatron_lm_calculate_per_token_loss", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .flags = {accelerate("--megatron_lm_calculate_per_token_loss")},
       .environment = "MEGATRON_LM_CALCULATE_PER_TOKEN_LOSS", .group = kMegatron, .help = "Scale the loss by the number of tokens."},
      {.name = "megatron_lm_use_rotary_position_embeddings", .type = ValueType::boolean, .in_file = true, .section = "megatron_lm_config", .since = "1.13.0", .flags = {accelerate("--megatron_lm_use_rotary_position_embeddings")},
       .environment = "MEGATRON_LM_USE_ROTARY_POSITION_EMBEDDINGS", .group = kMegatron, .help = "Use rotary position embeddings."},
  };
}

std::vector<SettingSpec> parallelism_rows() {
  return {
      {.name = "parallelism_config", .type = ValueType::section, .in_file = true, .since = "1.10.0", .otherwise = "{}",
       .help = "Sizes of the parallel dimensions."},
      {.name = "parallelism_config_dp_replicate_size", .type = ValueType::integer, .in_file = true, .section = "parallelism_config", .since = "1.10.0", .otherwise = "1", .least = 1, .flags = {accelerate("--parallelism_config_dp_replicate_size")},
       .environment = "PARALLELISM_CONFIG_DP_REPLICATE_SIZE", .group = kParallelism, .help = "Processes of replicated data parallelism."},
      {.name = "parallelism_config_dp_shard_size", .type = ValueType::integer, .in_file = true, .section = "parallelism_config", .since = "1.10.0", .otherwise = "1", .least = 1, .flags = {accelerate("--parallelism_config_dp_shard_size")},
       .environment = "PARALLELISM_CONFIG_DP_SHARD_SIZE", .group = kParallelism, .help = "Processes of sharded data parallelism."},
      {.name = "parallelism_config_tp_size", .type = ValueType::integer, .in_file = true, .section = "parallelism_config", .since = "1.10.0", .otherwise = "1", .least = 1, .flags = {accelerate("--parallelism_config_tp_size")},
       .environment = "PARALLELISM_CONFIG_TP_SIZE", .group = kParallelism, .help = "Processes of tensor parallelism."},
      {.name = "parallelism_config_cp_size", .type = ValueType::integer, .in_file = true, .section = "parallelism_config", .since = "1.10.0", .otherwise = "1", .least = 1, .flags = {accelerate("--parallelism_config_cp_size")},
       .environment = "PARALLELISM_CONFIG_CP_SIZE", .group = kParallelism, .help = "Processes of context parallelism."},
      {.name = "parallelism_config_cp_backend", .in_file = true, .section = "parallelism_config", .since = "1.12.0", .otherwise = "\"torch\"", .allowed = {"torch"}, .flags = {accelerate("--parallelism_config_cp_backend")},
       .environment = "PARALLELISM_CONFIG_CP_BACKEND", .group = kParallelism, .help = "What does context parallelism."},
      {.name = "parallelism_config_cp_comm_strategy", .in_file = true, .section = "parallelism_config", .since = "1.10.0", .otherwise = "\"allgather\"", .allowed = {"allgather", "alltoall"}, .flags = {accelerate("--parallelism_config_cp_comm_strategy")},
       .environment = "PARALLELISM_CONFIG_CP_COMM_STRATEGY", .group = kParallelism, .help = "How context-parallel processes exchange keys and values."},
      {.name = "parallelism_config_sp_size", .type = ValueType::integer, .in_file = true, .section = "parallelism_config", .since = "1.12.0", .otherwise = "1", .least = 1, .flags = {accelerate("--parallelism_config_sp_size")},
       .environment = "PARALLELISM_CONFIG_SP_SIZE", .group = kParallelism, .help = "Processes of sequence parallelism."},
      {.name = "parallelism_config_sp_backend", .in_file = true, .section = "parallelism_config", .since = "1.12.0", .otherwise = "\"deepspeed\"", .allowed = {"deepspeed"}, .flags = {accelerate("--parallelism_config_sp_backend")},
       .environment = "PARALLELISM_CONFIG_SP_BACKEND", .group = kParallelism, .help = "What does sequence parallelism."},
      {.name = "parallelism_config_sp_seq_length", .type = ValueType::integer, .in_file = true, .section = "parallelism_config", .since = "1.12.0", .least = 1, .flags = {accelerate("--parallelism_config_sp_seq_length")},
       .environment = "PARALLELISM_CONFIG_SP_SEQ_LENGTH", .group = kParallelism, .help = "Length of the sequences."},
      {.name = "parallelism_config_sp_seq_length_is_variable", .type = ValueType::boolean, .in_file = true, .section = "parallelism_config", .since = "1.12.0", .otherwise = "true", .flags = {accelerate("--parallelism_config_sp_seq_length_is_variable")},
       .environment = "PARALLELISM_CONFIG_SP_SEQ_LENGTH_IS_VARIABLE", .group = kParallelism, .help = "Sequences differ in length."},
      {.name = "parallelism_config_sp_attn_implementation", .in_file = true, .section = "parallelism_config", .since = "1.12.0", .otherwise = "\"sdpa\"", .flags = {accelerate("--parallelism_config_sp_attn_implementation")},
       .environment = "PARALLELISM_CONFIG_SP_ATTN_IMPLEMENTATION", .group = kParallelism, .help = "Implementation of attention under sequence parallelism."},
  };
}
// clang-format on

}  // namespace acc::launcher
