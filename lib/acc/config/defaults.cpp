// SPDX-License-Identifier: Apache-2.0
#include "acc/config/defaults.hpp"

#include <string>

namespace acc::launcher {

ConfigKind kind_of(const ConfigValues& values) {
  const auto found = values.find("compute_environment");
  const bool sagemaker = found != values.end() && found->second == "AMAZON_SAGEMAKER";
  return sagemaker ? ConfigKind::sagemaker : ConfigKind::cluster;
}

ConfigValues with_defaults(ConfigValues values) {
  const ConfigKind kind = kind_of(values);
  for (const SettingSpec& spec : schema()) {
    if (!at_top_level(spec, kind)) continue;
    if (Value value = default_value(spec); !value.is_null())
      values.try_emplace(std::string(file_key(spec)), std::move(value));
  }
  if (kind == ConfigKind::sagemaker) {
    values.try_emplace("gpu_ids", "all");
  } else if (values["distributed_type"] == "NO") {
    values.try_emplace("num_processes", 1);
  }
  return values;
}

ConfigValues default_config(int gpus, std::string_view mixed_precision) {
  return with_defaults({{"distributed_type", gpus > 1 ? "MULTI_GPU" : "NO"},
                        {"mixed_precision", mixed_precision},
                        {"num_processes", gpus > 1 ? gpus : 1},
                        {"use_cpu", gpus == 0}});
}

}  // namespace acc::launcher
