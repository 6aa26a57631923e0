// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kParallelism = "Parallel dimensions";

}  // namespace

// clang-format off
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
