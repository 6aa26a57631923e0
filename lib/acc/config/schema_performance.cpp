// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kDynamo = "torch.compile (dynamo)";
constexpr std::string_view kFp8 = "FP8";

}  // namespace

// clang-format off
std::span<const SettingSpec> dynamo_rows() {
  static SettingSpec rows[] = {
      {.name = "dynamo_config", .in_sagemaker = true, .since = "0.17.0", .help = "torch.compile."},
      {.name = "dynamo_backend", .since = "0.17.0", .default_value = "\"NO\"",
       .allowed = {"NO", "EAGER", "AOT_EAGER", "INDUCTOR", "AOT_TS_NVFUSER", "NVPRIMS_NVFUSER", "CUDAGRAPHS",
                   "OFI", "FX2TRT", "ONNXRT", "TENSORRT", "AOT_TORCHXLA_TRACE_ONCE", "TORCHXLA_TRACE_ONCE",
                   "TVM", "HPU_BACKEND", "NEURON"},
       .ignore_case = true,
       .flags = {accelerate("--dynamo_backend")}, .environment = "ACCELERATE_DYNAMO_BACKEND",
       .help = "Back end of torch.compile."},
      {.name = "dynamo_mode", .since = "0.17.0", .default_value = "\"default\"",
       .allowed = {"default", "reduce-overhead", "max-autotune"},
       .flags = {accelerate("--dynamo_mode")}, .environment = "ACCELERATE_DYNAMO_MODE",
       .help = "Mode of torch.compile."},
      {.name = "dynamo_use_fullgraph", .type = ValueType::boolean, .since = "0.17.0",
       .default_value = "false",
       .flags = {accelerate_switch("--dynamo_use_fullgraph")},
       .environment = "ACCELERATE_DYNAMO_USE_FULLGRAPH",
       .help = "Refuse graph breaks."},
      {.name = "dynamo_use_dynamic", .type = ValueType::boolean, .since = "0.17.0", .default_value = "false",
       .flags = {accelerate_switch("--dynamo_use_dynamic")}, .environment = "ACCELERATE_DYNAMO_USE_DYNAMIC",
       .help = "Compile for dynamic shapes."},
      {.name = "dynamo_use_regional_compilation", .type = ValueType::boolean, .since = "1.7.0",
       .default_value = "false",
       .flags = {accelerate_switch("--dynamo_use_regional_compilation")},
       .environment = "ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION",
       .help = "Compile repeated blocks once."},
  };
  return section_rows(kDynamo, rows);
}

std::span<const SettingSpec> fp8_rows() {
  static SettingSpec rows[] = {
      {.name = "fp8_config", .since = "0.34.0", .help = "8-bit floating point."},
      {.name = "fp8_backend", .key = "backend", .since = "0.34.0", .allowed = {"AO", "TE", "MSAMP"},
       .ignore_case = true,
       .flags = {accelerate("--fp8_backend")}, .environment = "ACCELERATE_FP8_BACKEND",
       .help = "Library: AO (torchao), TE (Transformer Engine) or MSAMP."},
      {.name = "fp8_use_autocast_during_eval", .type = ValueType::boolean, .key = "use_autocast_during_eval",
       .since = "0.34.0", .default_value = "false",
       .flags = {accelerate_switch("--fp8_use_autocast_during_eval")},
       .environment = "ACCELERATE_FP8_USE_AUTOCAST_DURING_EVAL",
       .help = "TE: FP8 in evaluation too."},
      {.name = "fp8_margin", .type = ValueType::integer, .key = "margin", .since = "0.34.0",
       .default_value = "0",
       .flags = {accelerate("--fp8_margin")}, .environment = "ACCELERATE_FP8_MARGIN",
       .help = "TE: margin of the gradient scaling."},
      {.name = "fp8_interval", .type = ValueType::integer, .key = "interval", .since = "0.34.0",
       .default_value = "1", .min = 1,
       .flags = {accelerate("--fp8_interval")}, .environment = "ACCELERATE_FP8_INTERVAL",
       .help = "TE: steps between computations of the scaling factor."},
      {.name = "fp8_format", .key = "fp8_format", .since = "0.34.0", .default_value = "\"HYBRID\"",
       .allowed = {"HYBRID", "E4M3", "E5M2"}, .ignore_case = true,
       .flags = {accelerate("--fp8_format")}, .environment = "ACCELERATE_FP8_FORMAT",
       .help = "TE: format of the numbers."},
      {.name = "fp8_amax_history_len", .type = ValueType::integer, .key = "amax_history_len",
       .former = {"amax_history_length"}, .since = "0.34.0", .default_value = "1024", .min = 1,
       .flags = {accelerate("--fp8_amax_history_len")}, .environment = "ACCELERATE_FP8_AMAX_HISTORY_LEN",
       .help = "TE: length of the history for the scaling factor."},
      {.name = "fp8_amax_compute_algo", .key = "amax_compute_algo", .former = {"amax_compute_algorithm"},
       .since = "0.34.0", .default_value = "\"most_recent\"", .allowed = {"max", "most_recent"},
       .flags = {accelerate("--fp8_amax_compute_algo")}, .environment = "ACCELERATE_FP8_AMAX_COMPUTE_ALGO",
       .help = "TE: how the scaling factor follows from the history."},
      {.name = "fp8_override_linear_precision", .type = ValueType::truths, .key = "override_linear_precision",
       .since = "0.34.0", .default_value = "[false, false, false]",
       .flags = {accelerate("--fp8_override_linear_precision")},
       .help = "TE: forward pass, gradients of inputs, gradients of weights in higher precision, as in "
               "true,false,false."},
      {.name = "fp8_use_mxfp8_block_scaling", .type = ValueType::boolean, .key = "use_mxfp8_block_scaling",
       .since = "1.11.0",
       .environment = "ACCELERATE_FP8_USE_MXFP8_BLOCK_SCALING",
       .help = "TE: scale blocks of numbers (MXFP8)."},
      {.name = "fp8_opt_level", .key = "opt_level", .former = {"optimization_level"}, .since = "0.34.0",
       .default_value = "\"O2\"", .allowed = {"O1", "O2"}, .ignore_case = true,
       .flags = {accelerate("--fp8_opt_level")}, .environment = "ACCELERATE_FP8_OPT_LEVEL",
       .help = "MSAMP: what is kept in 8 bits."},
      {.name = "fp8_enable_fsdp_float8_all_gather", .type = ValueType::boolean,
       .key = "enable_fsdp_float8_all_gather", .since = "1.13.0", .default_value = "true",
       .flags = {accelerate("--fp8_enable_fsdp_float8_all_gather")},
       .environment = "ACCELERATE_FP8_ENABLE_FSDP_FLOAT8_ALL_GATHER",
       .help = "AO: gather FSDP's shards in FP8."},
      {.name = "fp8_pad_inner_dim", .type = ValueType::boolean, .key = "pad_inner_dim", .since = "1.13.0",
       .default_value = "true",
       .flags = {accelerate("--fp8_pad_inner_dim")}, .environment = "ACCELERATE_FP8_PAD_INNER_DIM",
       .help = "AO: pad the inner dimension of matrix products."},
  };
  return section_rows(kFp8, rows);
}
// clang-format on

}  // namespace acc::launcher
