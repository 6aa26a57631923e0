// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/write_basic_config.hpp"

#include <cstdio>

#include "acc/base/environment.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/text.hpp"
#include "acc/config/defaults.hpp"
#include "acc/config/schema.hpp"
#include "acc/config/write.hpp"
#include "acc/plan/command_line.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

// accelerate writes JSON, which `acc launch` finds where there is no YAML file.
fs::path default_location(const Environment& environment) {
  if (const auto file = launcher::find_default_config(environment)) return *file;
  return launcher::default_config_path(environment).replace_extension(".json");
}

}  // namespace

std::optional<fs::path> write_basic_config(std::string_view mixed_precision, const fs::path& save_location) {
  const std::string precision = to_lower(mixed_precision);
  launcher::parse_setting(row_of(launcher::key::mixed_precision), precision, "mixed_precision");
  const Environment environment = Environment::of_process();
  const fs::path file = save_location.empty() ? default_location(environment) : save_location;
  std::error_code unreadable;  // then it cannot be written either, which says why
  if (fs::exists(file, unreadable)) {
    std::fputs(("There is a configuration at " + file.string() + " already; it was kept.\n").c_str(), stdout);
    return std::nullopt;
  }
  const auto gpus = visible_gpus(probe_machine(true), environment).size();
  launcher::write_config(launcher::default_config(static_cast<int>(gpus), precision), file);
  return file;
}

}  // namespace acc
