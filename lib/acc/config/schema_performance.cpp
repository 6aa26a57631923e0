// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kDynamo = "torch.compile (dynamo)";
constexpr std::string_view kFp8 = "FP8";

}  // namespace

// clang-format off
std::vector<SettingSpec> dynamo_rows() {
  return {
      {.name = "dynamo_config", .type = ValueType::section, .in_file = true, .in_sagemaker = true, .since = "0.17.0", .otherwise = "{}",
       .help = "torch.compile."},
      {.name = "dynamo_backend", .in_file = true, .section = "dynamo_config", .since = "0.17.0", .otherwise = "\"NO\"", .allowed = {"NO", "EAGER", "AOT_EAGER", "INDUCTOR", "AOT_TS_NVFUSER", "NVPRIMS_NVFUSER", "CUDAGRAPHS", "OFI", "FX2TRT", "ONNXRT", "TENSORRT", "AOT_TORCHXLA_TRACE_ONCE", "TORCHXLA_TRACE_ONCE", "TVM", "HPU_BACKEND", "NEURON"}, .any_case = true, .flags = {accelerate("--dynamo_backend")},
       .environment = "ACCELERATE_DYNAMO_BACKEND", .group = kDynamo, .help = "Back end of torch.compile."},
      {.name = "dynamo_mode", .in_file = true, .section = "dynamo_config", .since = "0.17.0", .otherwise = "\"default\"", .allowed = {"default", "reduce-overhead", "max-autotune"}, .flags = {accelerate("--dynamo_mode")},
       .environment = "ACCELERATE_DYNAMO_MODE", .group = kDynamo, .help = "Mode of torch.compile."},
      {.name = "dynamo_use_fullgraph", .type = ValueType::boolean, .in_file = true, .section = "dynamo_config", .since = "0.17.0", .otherwise = "false", .flags = {accelerate_switch("--dynamo_use_fullgraph")},
       .environment = "ACCELERATE_DYNAMO_USE_FULLGRAPH", .group = kDynamo, .help = "Refuse graph breaks."},
      {.name = "dynamo_use_dynamic", .type = ValueType::boolean, .in_file = true, .section = "dynamo_config", .since = "0.17.0", .otherwise = "false", .flags = {accelerate_switch("--dynamo_use_dynamic")},
       .environment = "ACCELERATE_DYNAMO_USE_DYNAMIC", .group = kDynamo, .help = "Compile for dynamic shapes."},
      {.name = "dynamo_use_regional_compilation", .type = ValueType::boolean, .in_file = true, .section = "dynamo_config", .since = "1.7.0", .otherwise = "false", .flags = {accelerate_switch("--dynamo_use_regional_compilation")},
       .environment = "ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION", .group = kDynamo, .help = "Compile repeated blocks once."},
  };
}

std::vector<SettingSpec> fp8_rows() {
  return {
      {.name = "fp8_config", .type = ValueType::section, .in_file = true, .since = "0.34.0", .otherwise = "{}",
       .help = "8-bit floating point."},
      {.name = "fp8_backend", .in_file = true, .section = "fp8_config", .key = "backend", .since = "0.34.0", .allowed = {"AO", "TE", "MSAMP"}, .any_case = true, .flags = {accelerate("--fp8_backend")},
       .environment = "ACCELERATE_FP8_BACKEND", .group = kFp8, .help = "Library: AO (torchao), TE (Transformer Engine) or MSAMP."},
      {.name = "fp8_use_autocast_during_eval", .type = ValueType::boolean, .in_file = true, .section = "fp8_config", .key = "use_autocast_during_eval", .since = "0.34.0", .otherwise = "false", .flags = {accelerate_switch("--fp8_use_autocast_during_eval")},
       .environment = "ACCELERATE_FP8_USE_AUTOCAST_DURING_EVAL", .group = kFp8, .help = "TE: FP8 in evaluation too."},
      {.name = "fp8_margin", .type = ValueType::integer, .in_file = true, .section = "fp8_config", .key = "margin", .since = "0.34.0", .otherwise = "0", .flags = {accelerate("--fp8_margin")},
       .environment = "ACCELERATE_FP8_MARGIN", .group = kFp8, .help = "TE: margin of the gradient scaling."},
      {.name = "fp8_interval", .type = ValueType::integer, .in_file = true, .section = "fp8_config", .key = "interval", .since = "0.34.0", .otherwise = "1", .least = 1, .flags = {accelerate("--fp8_interval")},
       .environment = "ACCELERATE_FP8_INTERVAL", .group = kFp8, .help = "TE: steps between computations of the scaling factor."},
      {.name = "fp8_format", .in_file = true, .section = "fp8_config", .key = "fp8_format", .since = "0.34.0", .otherwise = "\"HYBRID\"", .allowed = {"HYBRID", "E4M3", "E5M2"}, .any_case = true, .flags = {accelerate("--fp8_format")},
       .environment = "ACCELERATE_FP8_FORMAT", .group = kFp8, .help = "TE: format of the numbers."},
      {.name = "fp8_amax_history_len", .type = ValueType::integer, .in_file = true, .section = "fp8_config", .key = "amax_history_len", .former = {"amax_history_length"}, .since = "0.34.0", .otherwise = "1024", .least = 1, .flags = {accelerate("--fp8_amax_history_len")},
       .environment = "ACCELERATE_FP8_AMAX_HISTORY_LEN", .group = kFp8, .help = "TE: length of the history for the scaling factor."},
      {.name = "fp8_amax_compute_algo", .in_file = true, .section = "fp8_config", .key = "amax_compute_algo", .former = {"amax_compute_algorithm"}, .since = "0.34.0", .otherwise = "\"most_recent\"", .allowed = {"max", "most_recent"}, .flags = {accelerate("--fp8_amax_compute_algo")},
       .environment = "ACCELERATE_FP8_AMAX_COMPUTE_ALGO", .group = kFp8, .help = "TE: what of the history counts."},
      {.name = "fp8_override_linear_precision", .type = ValueType::truths, .in_file = true, .section = "fp8_config", .key = "override_linear_precision", .since = "0.34.0", .otherwise = "[false, false, false]", .flags = {accelerate("--fp8_override_linear_precision")},
       .group = kFp8, .help = "TE: forward pass, gradients of inputs, gradients of weights in higher precision, as in true,false,false."},
      {.name = "fp8_use_mxfp8_block_scaling", .type = ValueType::boolean, .in_file = true, .section = "fp8_config", .key = "use_mxfp8_block_scaling",
       .since = "1.11.0", .environment = "ACCELERATE_FP8_USE_MXFP8_BLOCK_SCALING", .group = kFp8, .help = "TE: scale blocks of numbers (MXFP8)."},
      {.name = "fp8_opt_level", .in_file = true, .section = "fp8_config", .key = "opt_level", .former = {"optimization_level"}, .since = "0.34.0", .otherwise = "\"O2\"", .allowed = {"O1", "O2"}, .any_case = true, .flags = {accelerate("--fp8_opt_level")},
       .environment = "ACCELERATE_FP8_OPT_LEVEL", .group = kFp8, .help = "MSAMP: what is kept in 8 bits."},
      {.name = "fp8_enable_fsdp_float8_all_gather", .type = ValueType::boolean, .in_file = true, .section = "fp8_config", .key = "enable_fsdp_float8_all_gather", .since = "1.13.0", .otherwise = "true", .flags = {accelerate("--fp8_enable_fsdp_float8_all_gather")},
       .environment = "ACCELERATE_FP8_ENABLE_FSDP_FLOAT8_ALL_GATHER", .group = kFp8, .help = "AO: gather FSDP's shards in FP8."},
      {.name = "fp8_pad_inner_dim", .type = ValueType::boolean, .in_file = true, .section = "fp8_config", .key = "pad_inner_dim", .since = "1.13.0", .otherwise = "true", .flags = {accelerate("--fp8_pad_inner_dim")},
       .environment = "ACCELERATE_FP8_PAD_INNER_DIM", .group = kFp8, .help = "AO: pad the inner dimension of matrix products."},
  };
}
// clang-format on

}  // namespace acc::launcher
