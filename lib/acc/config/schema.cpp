// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

std::vector<SettingSpec> all_rows() {
  std::vector<SettingSpec> all = general_rows();
  for (const auto family : {dynamo_rows, fsdp_rows, deepspeed_rows, megatron_rows, parallelism_rows, fp8_rows,
                            mpi_rows, tpu_rows, sagemaker_rows})
    std::ranges::move(family(), std::back_inserter(all));
  return all;
}

// Never destroyed: every exit would wait for it.
const std::vector<SettingSpec>& rows() {
  static const auto& all = *new std::vector<SettingSpec>(all_rows());
  return all;
}

// The prefix of the names of all settings of the section.
std::string prefix_of(std::string_view section) {
  if (section == "parallelism_config") return "parallelism_config_";
  return std::string(section.substr(0, section.rfind("config")));
}

}  // namespace

std::vector<SettingSpec> in_group(std::string_view group, std::vector<SettingSpec> rows) {
  for (SettingSpec& row : rows) row.group = group;
  return rows;
}

std::vector<SettingSpec> section_rows(SettingSpec section, std::string_view group,
                                      std::vector<SettingSpec> keys) {
  section.type = ValueType::section;
  section.in_file = true;
  section.default_value = "{}";
  for (SettingSpec& key : keys) {
    key.in_file = true;
    key.section = section.name;
  }
  keys = in_group(group, std::move(keys));
  keys.insert(keys.begin(), std::move(section));
  return keys;
}

std::span<const SettingSpec> schema() {
  return rows();
}

const SettingSpec* find_setting(std::string_view name) {
  const auto found = std::ranges::find(rows(), name, &SettingSpec::name);
  return found == rows().end() ? nullptr : &*found;
}

std::string_view file_key(const SettingSpec& spec) {
  return spec.key.empty() ? spec.name : spec.key;
}

bool at_top_level(const SettingSpec& spec, ConfigKind kind) {
  return spec.section.empty() && (kind == ConfigKind::cluster ? spec.in_file : spec.in_sagemaker);
}

const SettingSpec* find_file_key(std::string_view key, ConfigKind kind) {
  const auto found = std::ranges::find_if(
      rows(), [&](const SettingSpec& spec) { return at_top_level(spec, kind) && file_key(spec) == key; });
  return found == rows().end() ? nullptr : &*found;
}

const SettingSpec* find_section_key(std::string_view section, std::string_view key) {
  const std::string prefixed = prefix_of(section) + std::string(key);
  const auto found = std::ranges::find_if(rows(), [&](const SettingSpec& spec) {
    if (spec.section != section) return false;
    return file_key(spec) == key || spec.name == key || spec.name == prefixed ||
           std::ranges::find(spec.former, key) != spec.former.end() ||
           std::ranges::find(spec.former, prefixed) != spec.former.end();
  });
  return found == rows().end() ? nullptr : &*found;
}

std::vector<std::string> file_keys(ConfigKind kind) {
  std::vector<std::string> keys;
  for (const SettingSpec& spec : rows()) {
    if (at_top_level(spec, kind)) keys.emplace_back(file_key(spec));
  }
  std::ranges::sort(keys);
  return keys;
}

std::vector<std::string> section_keys(std::string_view section) {
  std::vector<std::string> keys;
  for (const SettingSpec& spec : rows()) {
    if (spec.section == section) keys.emplace_back(file_key(spec));
  }
  return keys;
}

Value default_value(const SettingSpec& spec) {
  if (spec.default_value == "null") return nullptr;
  if (spec.type == ValueType::boolean) return spec.default_value == "true";
  return Value::parse(spec.default_value);
}

}  // namespace acc::launcher
