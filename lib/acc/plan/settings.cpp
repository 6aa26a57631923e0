// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/settings.hpp"

#include <stdexcept>

#include "acc/base/text.hpp"

namespace acc {
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

}  // namespace

Settings::Settings(const LaunchInputs& inputs) {
  for (const SettingSpec& spec : schema()) {
    const std::string name(spec.name);
    const auto flag = inputs.command_line.flags.find(name);
    const auto pet = spec.pet.empty() ? std::nullopt : inputs.environment.find(spec.pet);
    if (flag != inputs.command_line.flags.end()) {
      typed_[name] = flag->second;
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

}  // namespace acc
