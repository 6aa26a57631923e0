// SPDX-License-Identifier: Apache-2.0
#include "acc/config/defaults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
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

namespace {

// What the file system answers to the question for the file, or the link.
std::error_code look_for(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(file, error);
  if (status.type() == fs::file_type::not_found)
    return std::make_error_code(std::errc::no_such_file_or_directory);
  return error;
}

// A link whose target is missing and a file on a server that does not answer are there: reading them says why
// they cannot be read. Behind a folder that others may not search, as a container's HOME=/root for its user,
// there may be none.
bool is_there(const fs::path& file) {
  const std::error_code error = look_for(file);
  return error != std::errc::no_such_file_or_directory && error != std::errc::permission_denied;
}

}  // namespace

std::optional<fs::path> find_default_config(const Environment& environment) {
  fs::path file = default_config_path(environment);
  if (is_there(file)) return file;
  file.replace_extension(".json");
  if (is_there(file)) return file;
  return std::nullopt;
}

std::string note_hidden_default_config(const Environment& environment) {
  const fs::path file = default_config_path(environment);
  if (look_for(file) != std::errc::permission_denied) return {};
  return fmt::format(
      "{}: permission denied: the defaults hold, whether or not this file exists (set HF_HOME, or "
      "name a file with --config_file)",
      file.string());
}

}  // namespace acc::launcher
