// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "acc/base/environment.hpp"

namespace acc::launcher {

/// `text` with a `~` at its beginning replaced by the home folder (HOME, else what the system knows).
std::filesystem::path expand_home(std::string_view text, const Environment& environment);

/// Where the default config file belongs: accelerate/default_config.yaml below HF_HOME, else below
/// XDG_CACHE_HOME/huggingface, else below ~/.cache/huggingface. accelerate 1.15 looks there too.
std::filesystem::path default_config_path(const Environment& environment);

/// The default config file, if there is one: the YAML file, else a default_config.json beside it, which
/// old versions of accelerate wrote.
std::optional<std::filesystem::path> find_default_config(const Environment& environment);

}  // namespace acc::launcher
