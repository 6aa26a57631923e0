// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "acc/config/schema.hpp"

namespace acc::launcher {

/// The rows of each family of settings.
std::vector<std::span<const SettingSpec>> general_rows();
std::span<const SettingSpec> dynamo_rows();
std::span<const SettingSpec> fsdp_rows();
std::span<const SettingSpec> deepspeed_rows();
std::span<const SettingSpec> megatron_rows();
std::span<const SettingSpec> parallelism_rows();
std::span<const SettingSpec> fp8_rows();
std::span<const SettingSpec> mpi_rows();
std::span<const SettingSpec> tpu_rows();
std::span<const SettingSpec> sagemaker_rows();

/// Completes the rows of a section of config files: the first is the section itself, the others are its keys,
/// which the help shows under `group`.
std::span<const SettingSpec> section_rows(std::string_view group, std::span<SettingSpec> rows);

/// Sets the heading of the rows in the help.
std::span<const SettingSpec> in_group(std::string_view group, std::span<SettingSpec> rows);

/// Flags of accelerate launch alone (`accelerate`), or of torchrun too (`both`). A switch takes no value.
inline Flag accelerate(std::string_view spelling) {
  return {.spelling = spelling};
}
inline Flag accelerate_switch(std::string_view spelling) {
  return {.spelling = spelling, .implicit_value = "true"};
}
inline Flag both(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true};
}
inline Flag both_switch(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .implicit_value = "true"};
}
/// Flags of torchrun after 2.11.
inline Flag later(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .new_to_torchrun = true};
}
/// Flags of acc itself, in both dialects.
inline Flag own(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .new_to_torchrun = true};
}
inline Flag own_switch(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .new_to_torchrun = true, .implicit_value = "true"};
}

}  // namespace acc::launcher
