// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kDynamo = "torch.compile (dynamo)";

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
// clang-format on

}  // namespace acc::launcher
