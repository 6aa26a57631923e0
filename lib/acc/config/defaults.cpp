// SPDX-License-Identifier: Apache-2.0
#include "acc/config/defaults.hpp"

#include <string>

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
    values.try_emplace("gpu_ids", "all");
  } else if (value_in(values, key::distributed_type) == DistributedType::no) {
    values.try_emplace("num_processes", 1);
  }
  return values;
}

ConfigValues default_config(int gpus, std::string_view mixed_precision) {
  return with_defaults(
      {{"distributed_type", word_of(gpus > 1 ? DistributedType::multi_gpu : DistributedType::no)},
       {"mixed_precision", mixed_precision},
       {"num_processes", gpus > 1 ? gpus : 1},
       {"use_cpu", gpus == 0}});
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
