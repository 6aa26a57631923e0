// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/settings.hpp"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

// torchrun reads switches as integers; Kubeflow sets PET_STANDALONE to nothing and means "on". argparse does
// not hold a variable to the choices of its flag.
Value read_pet(const SettingSpec& spec, const std::string& text) {
  if (spec.type != ValueType::boolean) {
    SettingSpec any_choice = spec;
    any_choice.allowed.clear();
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

/// The variable of `variable` has no effect beside a typed `flag`.
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

// The flag that makes the variable of this setting one without effect, or null.
const Setting* find_override(const LaunchInputs& inputs, std::string_view variable) {
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
    const std::string name(spec.name);
    const auto flag = inputs.command_line.flags.find(name);
    const auto pet = spec.pet.empty() ? std::nullopt : inputs.environment.find(spec.pet);
    if (flag != inputs.command_line.flags.end()) {
      typed_[name] = flag->second;
    } else if (const Setting* over = pet ? find_override(inputs, name) : nullptr) {
      notes_.push_back(fmt::format("{} has no effect beside {}", spec.pet, over->origin));
    } else if (pet) {
      typed_[name] = {read_pet(spec, *pet), std::string(spec.pet)};
    }
    if (const auto typed = typed_.find(name); typed != typed_.end()) {
      settings_[name] = typed->second;
    } else if (const Setting* in_file = find_in_file(inputs, spec)) {
      settings_[name] = *in_file;
    } else {
      settings_[name] = {default_value(spec), "default"};
    }
  }
}

const Setting& Settings::operator[](std::string_view name) const {
  const auto found = settings_.find(name);
  if (found == settings_.end())
    throw std::logic_error("no setting '" + std::string(name) + "' in the schema");
  return found->second;
}

bool Settings::given(std::string_view name) const {
  const Setting& setting = (*this)[name];
  return setting.origin != "default" && !setting.value.is_null();
}

bool Settings::typed(std::string_view name) const {
  return typed_.contains(name);
}

std::string Settings::text(std::string_view name) const {
  const Value& value = (*this)[name].value;
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : value.dump();
}

bool Settings::truth(std::string_view name) const {
  const Value& value = (*this)[name].value;
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
  settings_[std::string(name)] = {std::move(value), std::move(origin)};
}

}  // namespace acc::launcher
