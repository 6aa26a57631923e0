// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "acc/base/environment.hpp"
#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"

namespace acc::launcher {

/// The kind of config file that these values belong to.
ConfigKind kind_of(const ConfigValues& values);

/// Adds the defaults that accelerate uses for keys that a file of this kind leaves out.
ConfigValues with_defaults(ConfigValues values);

/// The config that `acc config default` writes for a machine with `gpus` visible GPUs: one worker per GPU,
/// or one on the CPU. It equals that of accelerate's write_basic_config.
ConfigValues default_config(int gpus, std::string_view mixed_precision);

/// The path of the default config file: accelerate/default_config.yaml below HF_HOME, else below
/// XDG_CACHE_HOME/huggingface, else below ~/.cache/huggingface, as in accelerate 1.15.
std::filesystem::path default_config_path(const Environment& environment);

/// The default config file if it exists: the YAML file, else default_config.json beside it, which old
/// versions of accelerate wrote. One that is there and cannot be read counts, as a link to a missing file.
std::optional<std::filesystem::path> find_default_config(const Environment& environment);

/// Says that a default config file would not be seen, as this user may not search its folder; empty: it
/// would.
std::string note_hidden_default_config(const Environment& environment);

}  // namespace acc::launcher
