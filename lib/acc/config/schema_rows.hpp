// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "acc/config/schema.hpp"

namespace acc::launcher {

/// The parts of the table, one for each family of settings.
std::vector<SettingSpec> dynamo_rows();
std::vector<SettingSpec> fsdp_rows();
std::vector<SettingSpec> deepspeed_rows();
std::vector<SettingSpec> megatron_rows();
std::vector<SettingSpec> parallelism_rows();
std::vector<SettingSpec> fp8_rows();
std::vector<SettingSpec> mpi_rows();
std::vector<SettingSpec> tpu_rows();
std::vector<SettingSpec> sagemaker_rows();

/// Flags: of accelerate's launch alone, or of both peers; a switch takes no value.
inline Flag accelerate(std::string_view spelling) {
  return {.spelling = spelling};
}
inline Flag accelerate_switch(std::string_view spelling) {
  return {.spelling = spelling, .means = "true"};
}
inline Flag both(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true};
}
inline Flag both_switch(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .means = "true"};
}
/// Of torchrun after 2.11.
inline Flag later(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .new_to_torchrun = true};
}
/// Of acc alone, in every dialect.
inline Flag own(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .new_to_torchrun = true};
}
inline Flag own_switch(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .new_to_torchrun = true, .means = "true"};
}

}  // namespace acc::launcher
