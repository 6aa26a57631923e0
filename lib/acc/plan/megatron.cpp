// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/megatron.hpp"

#include "acc/plan/section_variables.hpp"

namespace acc::launcher {

Environment megatron_environment(const Settings& settings) {
  Environment environment = section_variables(settings, "megatron_lm_config", TruthStyle::python);
  for (const SettingSpec& spec : schema()) {
    // Switches without a default are texts to accelerate's command line, and `true` is typed in lower case.
    const bool text = spec.section == "megatron_lm_config" && spec.type == ValueType::boolean &&
                      default_value(spec).is_null();
    if (text && settings.typed(spec.name))
      environment.set(std::string(spec.environment), variable_text(settings, spec, TruthStyle::lower));
  }
  environment.set("ACCELERATE_USE_MEGATRON_LM", "true");
  return environment;
}

}  // namespace acc::launcher
