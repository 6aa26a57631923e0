// SPDX-License-Identifier: Apache-2.0
#include "acc/config/defaults.hpp"

#include <string>

#include "acc/config/schema.hpp"

namespace acc {

ConfigValues with_defaults(ConfigValues values) {
  const auto environment = values.find("compute_environment");
  if (environment != values.end() && environment->second == "AMAZON_SAGEMAKER") return values;
  for (const SettingSpec& spec : schema()) {
    if (!at_top_level(spec, ConfigKind::cluster)) continue;
    if (Value value = default_value(spec); !value.is_null())
      values.try_emplace(std::string(spec.name), std::move(value));
  }
  if (values["distributed_type"] == "NO") values.try_emplace("num_processes", 1);
  return values;
}

ConfigValues default_config(int gpus, std::string_view mixed_precision) {
  return with_defaults({{"distributed_type", gpus > 1 ? "MULTI_GPU" : "NO"},
                        {"mixed_precision", mixed_precision},
                        {"num_processes", gpus > 1 ? gpus : 1},
                        {"use_cpu", gpus == 0}});
}

}  // namespace acc
