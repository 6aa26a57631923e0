// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "acc/config/value.hpp"

namespace acc {

/// Values by the name of their setting.
using ConfigValues = std::map<std::string, Value, std::less<>>;

/// What a config file says: no defaults, no nulls.
struct FileConfig {
  std::filesystem::path path = {};
  ConfigValues values = {};
  /// The line of each value.
  std::map<std::string, int, std::less<>> positions = {};
  /// What the person should know, a line each.
  std::vector<std::string> notes = {};
};

/// Reads accelerate's config files, also those of older versions; JSON when the name ends in `.json`, else
/// YAML. Each value has its setting's type. Sections and SageMaker's files are kept whole.
/// Throws Error{config} with all problems of the file, each at `file:line:column` and with the nearest key
/// where one is unknown; Error{system} when the file cannot be read.
FileConfig read_config(const std::filesystem::path& file);

/// The same for a text at hand; `file` decides the format and is named in messages.
FileConfig parse_config(std::string_view text, const std::filesystem::path& file);

}  // namespace acc
