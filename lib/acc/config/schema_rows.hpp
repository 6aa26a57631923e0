// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "acc/config/schema.hpp"

namespace acc::launcher {

/// The rows of each family of settings.
std::vector<SettingSpec> general_rows();
std::vector<SettingSpec> dynamo_rows();
std::vector<SettingSpec> fsdp_rows();
std::vector<SettingSpec> deepspeed_rows();
std::vector<SettingSpec> megatron_rows();
std::vector<SettingSpec> parallelism_rows();
std::vector<SettingSpec> fp8_rows();
std::vector<SettingSpec> mpi_rows();
std::vector<SettingSpec> tpu_rows();
std::vector<SettingSpec> sagemaker_rows();

/// Returns the row of a section of config files followed by the rows of its keys, which the help shows
/// under `group`.
std::vector<SettingSpec> section_rows(SettingSpec section, std::string_view group,
                                      std::vector<SettingSpec> keys);

/// Returns the rows with their heading in the help set to `group`.
std::vector<SettingSpec> in_group(std::string_view group, std::vector<SettingSpec> rows);

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
