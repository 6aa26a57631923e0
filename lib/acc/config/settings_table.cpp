// SPDX-License-Identifier: Apache-2.0
#include "acc/config/settings_table.hpp"

#include <algorithm>
#include <string>

namespace acc::launcher {
namespace {

std::string key_of(const SettingSpec& spec) {
  if (!spec.in_file && !spec.in_sagemaker) return "";
  const std::string key(file_key(spec));
  return spec.section.empty() ? key : std::string(spec.section) + "." + key;
}

// The commands that have a flag of the setting.
Value commands_of(const SettingSpec& spec) {
  Value commands = Value::array();
  if (std::ranges::any_of(spec.flags, &Flag::launch)) commands.push_back("launch");
  if (std::ranges::any_of(spec.flags, &Flag::torchrun)) commands.push_back("run");
  return commands;
}

Value table_row(const SettingSpec& spec) {
  Value words = Value::array();
  for (const std::string_view word : spec.allowed) words.push_back(word);
  Value flags = Value::array();
  for (const Flag& flag : spec.flags) flags.push_back(flag.spelling);
  Value variables = Value::array();
  for (const std::string_view variable : {spec.variable, spec.pet}) {
    if (!variable.empty()) variables.push_back(variable);
  }
  return {{"name", spec.name},   {"group", spec.group},    {"help", spec.help},
          {"words", words},      {"flags", flags},         {"commands", commands_of(spec)},
          {"key", key_of(spec)}, {"variables", variables}, {"default", default_value(spec)}};
}

}  // namespace

Value settings_table() {
  Value rows = Value::array();
  for (const SettingSpec& spec : schema()) rows.push_back(table_row(spec));
  return rows;
}

}  // namespace acc::launcher
