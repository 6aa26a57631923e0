// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "acc/config/read.hpp"

namespace acc::launcher {

/// The values that a config file contains: all but nulls and empty sections.
Value written_values(const ConfigValues& values);

/// Throws Error{config} with `name`, or the key in it, for a text that is not UTF-8: no config file can have
/// it.
void require_utf8(const Value& value, const std::string& name);

/// The text of a config file as accelerate 1.15 writes it, empty lists included: JSON if the name ends in
/// `.json`, else YAML. Throws Error{config} for a text that is not UTF-8.
std::string format_config(const ConfigValues& values, const std::filesystem::path& file);

/// Writes a config file atomically and creates missing folders. Throws Error{system}.
void write_config(const ConfigValues& values, const std::filesystem::path& file);

}  // namespace acc::launcher
