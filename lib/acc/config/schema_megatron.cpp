// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kMegatron = "Megatron-LM";

}  // namespace

// clang-format off
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
// clang-format on

}  // namespace acc::launcher
