// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kTpu = "TPU";

}  // namespace

// clang-format off
std::vector<SettingSpec> tpu_rows() {
  return {
      {.name = "main_training_function", .in_file = true, .since = "0.1.0", .otherwise = "\"main\"", .flags = {accelerate("--main_training_function")},
       .group = kTpu, .help = "Function of the script that each TPU process calls."},
      {.name = "downcast_bf16", .type = ValueType::boolean, .in_file = true, .since = "0.12.0", .otherwise = "false", .flags = {accelerate_switch("--downcast_bf16")},
       .group = kTpu, .help = "With bf16, float and double both become bfloat16."},
      {.name = "tpu_use_cluster", .type = ValueType::boolean, .in_file = true, .since = "0.17.0", .otherwise = "false", .flags = {accelerate_switch("--tpu_cluster"), {.spelling = "--no_tpu_cluster", .means = "false"}},
       .group = kTpu, .help = "The TPU is a pod of several machines."},
      {.name = "tpu_use_sudo", .type = ValueType::boolean, .in_file = true, .since = "0.17.0", .otherwise = "false", .flags = {accelerate_switch("--tpu_use_sudo")},
       .group = kTpu, .help = "Run commands on the pod with sudo."},
      {.name = "tpu_vm", .type = ValueType::list, .in_file = true, .since = "0.17.0", .flags = {accelerate("--vm")},
       .group = kTpu, .help = "Name of one of the pod's machines; may be given several times."},
      {.name = "tpu_env", .type = ValueType::list, .in_file = true, .since = "0.17.0", .flags = {accelerate("--env")},
       .group = kTpu, .help = "Variable NAME=VALUE for the pod's machines; may be given several times."},
      {.name = "tpu_name", .in_file = true,
       .since = "0.14.0", .help = "Name of the TPU."},
      {.name = "tpu_zone", .in_file = true,
       .since = "0.14.0", .help = "Zone of the TPU."},
      {.name = "command_file", .in_file = true,
       .since = "0.14.0", .help = "File with commands to run when the pod starts."},
      {.name = "commands", .type = ValueType::list, .in_file = true,
       .since = "0.14.0", .help = "Commands to run when the pod starts."},
  };
}
// clang-format on

}  // namespace acc::launcher
