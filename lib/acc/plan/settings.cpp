// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/settings.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <stdexcept>

#include "acc/base/text.hpp"
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

const Setting* find_in_file(const LaunchInputs& inputs, const SettingSpec& spec) {
  const auto found = inputs.file.find(spec.name);
  return found == inputs.file.end() || found->second.value.is_null() ? nullptr : &found->second;
}

/// The environment variable of setting `variable` has no effect if `flag` is given.
struct Override {
  std::string_view flag = {};
  std::string_view variable = {};
};

constexpr std::array kOverrides = {
    Override{"num_processes", "nproc_per_node"},
    Override{"num_machines", "nnodes"},
    Override{"main_process_ip", "rdzv_endpoint"},
    Override{"num_machines", "standalone"},
    Override{"nnodes", "standalone"},
    Override{"main_process_ip", "standalone"},
    Override{"main_process_port", "standalone"},
    Override{"rdzv_backend", "standalone"},
    Override{"rdzv_endpoint", "standalone"},
    Override{"module", "no_python"},
    Override{"module", "run_path"},
    Override{"no_python", "module"},
    Override{"no_python", "run_path"},
    Override{"run_path", "module"},
    Override{"run_path", "no_python"},
};

// The flag that overrides the environment variable of this setting, or null.
const Setting* find_override(const LaunchInputs& inputs, std::string_view variable) {
  if (inputs.dialect == Dialect::torchrun) return nullptr;
  for (const Override& entry : kOverrides) {
    const auto flag = inputs.command_line.flags.find(entry.flag);
    if (entry.variable == variable && flag != inputs.command_line.flags.end()) return &flag->second;
  }
  return nullptr;
}

Setting default_setting(std::string_view name) {
  const SettingSpec* spec = find_setting(name);
  if (spec == nullptr) throw std::logic_error("no setting '" + std::string(name) + "' in the schema");
  return {.value = default_value(*spec)};
}

}  // namespace

Settings::Settings(const LaunchInputs& inputs) {
  for (const SettingSpec& spec : schema()) {
    const auto flag = inputs.command_line.flags.find(spec.name);
    const auto own = spec.variable.empty() ? std::nullopt : inputs.environment.find(spec.variable);
    const auto pet = spec.pet.empty() ? std::nullopt : inputs.environment.find(spec.pet);
    std::optional<Setting> given;
    if (flag != inputs.command_line.flags.end()) {
      given = flag->second;
    } else if (own) {
      const std::string origin(spec.variable);
      given = {parse_setting(spec, *own, origin), origin};
    } else if (const Setting* over = pet ? find_override(inputs, spec.name) : nullptr) {
      notes_.push_back(fmt::format("{} has no effect beside {}", spec.pet, over->origin));
    } else if (pet) {
      given = {read_pet(spec, *pet), std::string(spec.pet)};
    }
    if (given) {
      explicit_.emplace(spec.name);
      given_.emplace(spec.name, std::move(*given));
    } else if (const Setting* in_file = find_in_file(inputs, spec)) {
      given_.emplace(spec.name, *in_file);
    }
  }
}

Setting Settings::operator[](std::string_view name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? default_setting(name) : found->second;
}

bool Settings::given(std::string_view name) const {
  const Setting setting = (*this)[name];
  return setting.origin != "default" && !setting.value.is_null();
}

bool Settings::is_explicit(std::string_view name) const {
  return explicit_.contains(name);
}

std::string Settings::text(std::string_view name) const {
  const Value value = (*this)[name].value;
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : value.dump();
}

bool Settings::truth(std::string_view name) const {
  const Value value = (*this)[name].value;
  if (value.is_string()) return parse_truth(value.get<std::string>()).value_or(false);
  return value.is_boolean() && value.get<bool>();
}

std::int64_t Settings::integer(std::string_view name) const {
  return (*this)[name].value.get<std::int64_t>();
}

double Settings::number(std::string_view name) const {
  return (*this)[name].value.get<double>();
}

void Settings::set(std::string_view name, Value value, std::string origin) {
  given_[std::string(name)] = {std::move(value), std::move(origin)};
}

void Settings::replace(std::string_view name, Value value, std::string origin) {
  explicit_.erase(std::string(name));
  set(name, std::move(value), std::move(origin));
}

std::map<std::string_view, Setting> Settings::all() const {
  std::map<std::string_view, Setting> all;
  for (const SettingSpec& spec : schema()) all.emplace(spec.name, (*this)[spec.name]);
  return all;
}

std::string truth_text(bool value, TruthStyle style) {
  if (style == TruthStyle::lower) return value ? "true" : "false";
  return value ? "True" : "False";
}

std::string variable_text(const Settings& settings, const SettingSpec& spec, TruthStyle style) {
  const Value value = settings[spec.name].value;
  return value.is_boolean() ? truth_text(value.get<bool>(), style) : settings.text(spec.name);
}

Environment section_variables(const Settings& settings, std::string_view section, TruthStyle style) {
  Environment environment;
  for (const SettingSpec& spec : schema()) {
    if (spec.section != section || spec.environment.empty() || settings[spec.name].value.is_null()) continue;
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

std::map<std::string, Setting, std::less<>> file_settings(const FileConfig& file) {
  std::map<std::string, Setting, std::less<>> settings;
  for (const auto& [key, value] : file.values) {
    settings[key] = {value, origin_of(file, key)};
    if (!value.is_object()) continue;
    for (const auto& [inner, inner_value] : value.items()) {
      const SettingSpec* spec = find_section_key(key, inner);
      if (spec != nullptr)
        settings[std::string(spec->name)] = {inner_value, origin_of(file, key + "." + inner)};
    }
  }
  return settings;
}

std::vector<std::string> file_order(const FileConfig& file) {
  std::vector<std::string> names;
  for (const std::string& key : file.order) {
    const std::size_t dot = key.find('.');
    const SettingSpec* spec =
        dot == std::string::npos ? nullptr : find_section_key(key.substr(0, dot), key.substr(dot + 1));
    names.emplace_back(spec == nullptr ? key : std::string(spec->name));
  }
  return names;
}

}  // namespace acc::launcher
