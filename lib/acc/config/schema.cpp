// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "acc/config/schema_rows.hpp"

namespace acc::launcher {
namespace {

using Rows = std::vector<const SettingSpec*>;

Rows all_rows() {
  Rows all;
  all.reserve(256);
  const auto add = [&](std::span<const SettingSpec> rows) {
    for (const SettingSpec& row : rows) all.push_back(&row);
  };
  for (const auto rows : general_rows()) add(rows);
  for (const auto family : {dynamo_rows, fsdp_rows, deepspeed_rows, megatron_rows, parallelism_rows, fp8_rows,
                            mpi_rows, tpu_rows, sagemaker_rows})
    add(family());
  return all;
}

const SettingSpec& at(const SettingSpec* row) {
  return *row;
}

template <typename Condition>
const SettingSpec* find_row(const Condition& holds) {
  for (const SettingSpec& row : schema()) {
    if (holds(row)) return &row;
  }
  return nullptr;
}

// No text of the table has an escape.
Value parse_cell(const SettingSpec& spec, std::string_view json) {
  if (json == "null") return nullptr;
  if (json.starts_with('"')) return json.substr(1, json.size() - 2);
  if (spec.type == ValueType::boolean) return json == "true";
  return Value::parse(json);
}

// The prefix of the names of all settings of the section.
std::string prefix_of(std::string_view section) {
  if (section == "parallelism_config") return "parallelism_config_";
  return std::string(section.substr(0, section.rfind("config")));
}

}  // namespace

std::span<const SettingSpec> in_group(std::string_view group, std::span<SettingSpec> rows) {
  for (SettingSpec& row : rows) row.group = group;
  return rows;
}

std::span<const SettingSpec> section_rows(std::string_view group, std::span<SettingSpec> rows) {
  SettingSpec& section = rows.front();
  section.type = ValueType::section;
  section.in_file = true;
  section.default_value = "{}";
  const std::span<SettingSpec> keys = rows.subspan(1);
  for (SettingSpec& key : keys) {
    key.in_file = true;
    key.section = section.name;
  }
  in_group(group, keys);
  return rows;
}

SettingSpecs schema() {
  static const Rows& rows = *new Rows(all_rows());  // never destroyed: every exit would wait for it
  return {rows, at};
}

const SettingSpec* find_setting(std::string_view name) {
  using ByName = std::unordered_map<std::string_view, const SettingSpec*>;
  static const ByName& by_name = *new ByName([] {
    ByName rows(schema().size());
    for (const SettingSpec& row : schema()) rows.emplace(row.name, &row);
    return rows;
  }());
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

std::string_view file_key(const SettingSpec& spec) {
  return spec.key.empty() ? spec.name : spec.key;
}

bool at_top_level(const SettingSpec& spec, ConfigKind kind) {
  return spec.section.empty() && (kind == ConfigKind::cluster ? spec.in_file : spec.in_sagemaker);
}

const SettingSpec* find_file_key(std::string_view key, ConfigKind kind) {
  return find_row([&](const SettingSpec& spec) { return at_top_level(spec, kind) && file_key(spec) == key; });
}

const SettingSpec* find_section_key(std::string_view section, std::string_view key) {
  const std::string prefixed = prefix_of(section) + std::string(key);
  return find_row([&](const SettingSpec& spec) {
    if (spec.section != section) return false;
    return file_key(spec) == key || spec.name == key || spec.name == prefixed ||
           std::ranges::find(spec.former, key) != spec.former.end() ||
           std::ranges::find(spec.former, prefixed) != spec.former.end();
  });
}

std::vector<std::string> file_keys(ConfigKind kind) {
  std::vector<std::string> keys;
  for (const SettingSpec& spec : schema()) {
    if (at_top_level(spec, kind)) keys.emplace_back(file_key(spec));
  }
  std::ranges::sort(keys);
  return keys;
}

std::vector<std::string> section_keys(std::string_view section) {
  std::vector<std::string> keys;
  for (const SettingSpec& spec : schema()) {
    if (spec.section == section) keys.emplace_back(file_key(spec));
  }
  return keys;
}

Value default_value(const SettingSpec& spec) {
  return parse_cell(spec, spec.default_value);
}

Value implicit_value(const SettingSpec& spec, const Flag& flag) {
  return flag.implicit_value ? parse_cell(spec, *flag.implicit_value) : nullptr;
}

}  // namespace acc::launcher
