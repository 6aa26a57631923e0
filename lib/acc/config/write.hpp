// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "acc/config/read.hpp"

namespace acc::launcher {

/// What a config file holds of `values`: all but nulls and empty sections.
Value written_values(const ConfigValues& values);

/// The text of a config file as accelerate 1.15 writes it: the written_values(), with empty lists; JSON when
/// the name ends in `.json`, else YAML.
std::string format_config(const ConfigValues& values, const std::filesystem::path& file);

/// Writes it in one step, so that no reader ever sees a part; makes missing folders.
/// Throws Error{system}.
void write_config(const ConfigValues& values, const std::filesystem::path& file);

}  // namespace acc::launcher
