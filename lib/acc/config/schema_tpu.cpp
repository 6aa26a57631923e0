// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc {
namespace {

constexpr std::string_view kTpu = "TPU";

}  // namespace

// clang-format off
std::vector<SettingSpec> tpu_rows() {
  return {
      {.name = "main_training_function", .in_file = true, .otherwise = "\"main\"", .flags = {accelerate("--main_training_function")},
       .group = kTpu, .help = "Function of the script that each TPU process calls."},
      {.name = "downcast_bf16", .type = ValueType::boolean, .in_file = true, .otherwise = "false", .flags = {accelerate_switch("--downcast_bf16")},
       .group = kTpu, .help = "With bf16, float and double both become bfloat16."},
      {.name = "tpu_use_cluster", .type = ValueType::boolean, .in_file = true, .otherwise = "false", .flags = {accelerate_switch("--tpu_cluster"), {.spelling = "--no_tpu_cluster", .means = "false"}},
       .group = kTpu, .help = "The TPU is a pod of several machines."},
      {.name = "tpu_use_sudo", .type = ValueType::boolean, .in_file = true, .otherwise = "false", .flags = {accelerate_switch("--tpu_use_sudo")},
       .group = kTpu, .help = "Run commands on the pod with sudo."},
      {.name = "tpu_vm", .type = ValueType::list, .in_file = true, .flags = {accelerate("--vm")},
       .group = kTpu, .help = "Name of one of the pod's machines; may be given several times."},
      {.name = "tpu_env", .type = ValueType::list, .in_file = true, .flags = {accelerate("--env")},
       .group = kTpu, .help = "Variable NAME=VALUE for the pod's machines; may be given several times."},
      {.name = "tpu_name", .in_file = true,
       .help = "Name of the TPU."},
      {.name = "tpu_zone", .in_file = true,
       .help = "Zone of the TPU."},
      {.name = "command_file", .in_file = true,
       .help = "File with commands to run when the pod starts."},
      {.name = "commands", .type = ValueType::list, .in_file = true,
       .help = "Commands to run when the pod starts."},
  };
}
// clang-format on

}  // namespace acc
