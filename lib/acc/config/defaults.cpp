// SPDX-License-Identifier: Apache-2.0
#include "acc/config/defaults.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "acc/base/home.hpp"

namespace acc::launcher {

namespace fs = std::filesystem;

ConfigKind kind_of(const ConfigValues& values) {
  const auto environment = value_in(values, key::compute_environment);
  return environment == ComputeEnvironment::amazon_sagemaker ? ConfigKind::sagemaker : ConfigKind::cluster;
}

ConfigValues with_defaults(ConfigValues values) {
  const ConfigKind kind = kind_of(values);
  for (const SettingSpec& spec : schema()) {
    if (!at_top_level(spec, kind)) continue;
    if (Value value = default_value(spec); !value.is_null())
      values.try_emplace(std::string(file_key(spec)), std::move(value));
  }
  if (kind == ConfigKind::sagemaker) {
    values.try_emplace(std::string(file_key(row_of(key::gpu_ids))), "all");
  } else if (value_in(values, key::distributed_type) == DistributedType::no) {
    values.try_emplace(std::string(file_key(row_of(key::num_processes))), 1);
  }
  return values;
}

ConfigValues default_config(int gpus, std::string_view mixed_precision) {
  ConfigValues values;
  set_value(values, key::distributed_type, gpus > 1 ? DistributedType::multi_gpu : DistributedType::no);
  set_value(values, key::mixed_precision, std::string(mixed_precision));
  set_value(values, key::num_processes, std::max(gpus, 1));
  set_value(values, key::use_cpu, gpus == 0);
  return with_defaults(std::move(values));
}

fs::path default_config_path(const Environment& environment) {
  fs::path base = expand_home("~/.cache", environment) / "huggingface";
  if (const auto cache = environment.find("XDG_CACHE_HOME"))
    base = expand_home(*cache, environment) / "huggingface";
  if (const auto home = environment.find("HF_HOME")) base = expand_home(*home, environment);
  return base / "accelerate" / "default_config.yaml";
}

std::optional<fs::path> find_default_config(const Environment& environment) {
  fs::path file = default_config_path(environment);
  std::error_code ignored;
  if (fs::exists(file, ignored)) return file;
  file.replace_extension(".json");
  if (fs::exists(file, ignored)) return file;
  return std::nullopt;
}

}  // namespace acc::launcher
