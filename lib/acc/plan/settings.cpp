// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/settings.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "acc/base/text.hpp"
#include "acc/config/defaults.hpp"
#include "acc/plan/command_line.hpp"
#include "acc/plan/launch_inputs.hpp"

namespace acc::launcher {
namespace {

// torchrun reads switches as integers; Kubeflow sets PET_STANDALONE to the empty string for "on". argparse
// does not check defaults from variables against the choices of a flag.
Value read_pet(const SettingSpec& spec, const std::string& text) {
  if (spec.type != ValueType::boolean) {
    const SettingSpec any_choice = {.name = spec.name,
                                    .type = spec.type,
                                    .default_value = spec.default_value,
                                    .min = spec.min,
                                    .max = spec.max};
    return parse_setting(any_choice, text, std::string(spec.pet));
  }
  if (text.empty()) return true;
  if (const auto number = parse_integer(text)) return *number != 0;
  return parse_setting(spec, text, std::string(spec.pet));
}

const Setting* find_in_file(const LaunchInputs& inputs, SettingId id) {
  const auto found = inputs.file.find(id);
  return found == inputs.file.end() || found->second.value.is_null() ? nullptr : &found->second;
}

/// The environment variable of setting `variable` has no effect if `flag` is given.
struct Override {
  SettingId flag = {};
  SettingId variable = {};
};

constexpr std::array kOverrides = {
    Override{key::num_processes, key::nproc_per_node},
    Override{key::num_machines, key::nnodes},
    Override{key::main_process_ip, key::rdzv_endpoint},
    Override{key::num_machines, key::standalone},
    Override{key::nnodes, key::standalone},
    Override{key::main_process_ip, key::standalone},
    Override{key::main_process_port, key::standalone},
    Override{key::rdzv_backend, key::standalone},
    Override{key::rdzv_endpoint, key::standalone},
    Override{key::module, key::no_python},
    Override{key::module, key::run_path},
    Override{key::no_python, key::module},
    Override{key::no_python, key::run_path},
    Override{key::run_path, key::module},
    Override{key::run_path, key::no_python},
};

// The flag that overrides the environment variable of this setting, or null.
const Setting* find_override(const LaunchInputs& inputs, SettingId variable) {
  if (inputs.dialect == Dialect::torchrun) return nullptr;
  for (const Override& entry : kOverrides) {
    const auto flag = inputs.command_line.flags.find(entry.flag);
    if (entry.variable == variable && flag != inputs.command_line.flags.end()) return &flag->second;
  }
  return nullptr;
}

}  // namespace

Settings::Settings(const LaunchInputs& inputs) {
  for (const SettingSpec& spec : schema()) {
    const auto flag = inputs.command_line.flags.find(spec.id);
    const auto variable = spec.variable.empty() ? std::nullopt : inputs.environment.find(spec.variable);
    const auto pet = spec.pet.empty() ? std::nullopt : inputs.environment.find(spec.pet);
    std::optional<Setting> explicit_value;
    if (flag != inputs.command_line.flags.end()) {
      explicit_value = flag->second;
    } else if (variable) {
      const std::string origin(spec.variable);
      explicit_value = {parse_setting(spec, *variable, origin), origin};
    } else if (const Setting* overriding = pet ? find_override(inputs, spec.id) : nullptr) {
      notes_.push_back(fmt::format("{} has no effect beside {}", spec.pet, overriding->origin));
    } else if (pet) {
      explicit_value = {read_pet(spec, *pet), std::string(spec.pet)};
    }
    if (explicit_value) {
      explicit_.insert(spec.id);
      values_.emplace(spec.id, std::move(*explicit_value));
    } else if (const Setting* in_file = find_in_file(inputs, spec.id)) {
      values_.emplace(spec.id, *in_file);
    }
  }
}

Setting Settings::setting(SettingId id) const {
  const auto found = values_.find(id);
  return found == values_.end() ? Setting{.value = default_value(row_of(id))} : found->second;
}

std::string Settings::origin(SettingId id) const {
  const auto found = values_.find(id);
  return found == values_.end() ? Setting().origin : found->second.origin;
}

std::string Settings::text(SettingId id) const {
  const Value value = setting(id).value;
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : value.dump();
}

bool Settings::given(SettingId id) const {
  const auto found = values_.find(id);
  return found != values_.end() && found->second.origin != "default" && !found->second.value.is_null();
}

bool Settings::is_explicit(SettingId id) const {
  return explicit_.contains(id);
}

std::map<std::string_view, Setting> Settings::all() const {
  std::map<std::string_view, Setting> result;
  for (const SettingSpec& spec : schema()) result.emplace(spec.name, setting(spec.id));
  return result;
}

std::string truth_text(bool value, TruthStyle style) {
  if (style == TruthStyle::lower) return value ? "true" : "false";
  return value ? "True" : "False";
}

std::string variable_text(const Settings& settings, const SettingSpec& spec, TruthStyle style) {
  const Value value = settings.setting(spec.id).value;
  return value.is_boolean() ? truth_text(value.get<bool>(), style) : settings.text(spec.id);
}

Environment section_variables(const Settings& settings, SettingKey<Section> section, TruthStyle style) {
  Environment environment;
  for (const SettingSpec& spec : schema()) {
    const bool belongs = spec.section == row_of(section).name && !spec.environment.empty();
    if (!belongs || settings.setting(spec.id).value.is_null()) continue;
    environment.set(std::string(spec.environment), variable_text(settings, spec, style));
  }
  return environment;
}

namespace {

std::string origin_of(const FileConfig& file, const std::string& key) {
  const auto line = file.positions.find(key);
  return line == file.positions.end() ? file.path.string()
                                      : fmt::format("{}:{}", file.path.string(), line->second);
}

}  // namespace

SettingMap file_settings(const FileConfig& file) {
  const ConfigKind kind = kind_of(file.values);
  SettingMap settings;
  const auto add = [&](const SettingSpec* spec, const Value& value, const std::string& key) {
    if (spec != nullptr) settings[spec->id] = {value, origin_of(file, key)};
  };
  for (const auto& [key, value] : file.values) {
    add(find_file_key(key, kind), value, key);
    if (!value.is_object()) continue;
    for (const auto& [inner, inner_value] : value.items())
      add(find_section_key(key, inner), inner_value, key + "." + inner);
  }
  return settings;
}

std::vector<SettingId> file_order(const FileConfig& file) {
  const ConfigKind kind = kind_of(file.values);
  std::vector<SettingId> settings;
  for (const std::string& key : file.order) {
    const std::size_t dot = key.find('.');
    const SettingSpec* spec = dot == std::string::npos
                                  ? find_file_key(key, kind)
                                  : find_section_key(key.substr(0, dot), key.substr(dot + 1));
    if (spec != nullptr) settings.push_back(spec->id);
  }
  return settings;
}

}  // namespace acc::launcher
