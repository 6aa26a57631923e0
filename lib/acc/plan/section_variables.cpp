// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/section_variables.hpp"

namespace acc::launcher {

std::string truth_text(bool value, TruthStyle style) {
  if (style == TruthStyle::lower) return value ? "true" : "false";
  return value ? "True" : "False";
}

std::string variable_text(const Settings& settings, const SettingSpec& spec, TruthStyle style) {
  const Value& value = settings[spec.name].value;
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

}  // namespace acc::launcher
