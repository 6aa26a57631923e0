// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/config/value.hpp"

namespace acc::launcher {

/// Values by the name of their setting.
using ConfigValues = std::map<std::string, Value, std::less<>>;

/// What a config file says: no defaults, no nulls.
struct FileConfig {
  std::filesystem::path path = {};
  ConfigValues values = {};
  /// The line of each value; of one in a section under `section.key`.
  std::map<std::string, int, std::less<>> positions = {};
  /// The keys of `positions` in the order of the file.
  std::vector<std::string> order = {};
  /// Keys that have no effect: unknown ones inside of sections, former ones, and all but the last of equal
  /// ones.
  std::vector<Problem> notes = {};
};

/// A file with everything that there is to say about it.
struct ConfigReport {
  /// What could be read. Its notes are without those that are in `misspelt`.
  FileConfig config = {};
  /// Why the file cannot be used.
  std::vector<Problem> problems = {};
  /// Keys inside of sections that have no effect and are nearly another's.
  std::vector<Problem> misspelt = {};
};

/// Reads accelerate's config files, also those of older versions; JSON when the name ends in `.json`, else
/// YAML. Each value has its setting's type, and each key inside of a section its name of today.
/// Throws Error{config} with all problems of the file, each at `file:line:column` and with the nearest key
/// where one is unknown; Error{system} when the file cannot be read.
FileConfig read_config(const std::filesystem::path& file);

/// The same with everything that is wrong as a value. Throws Error{config} for a text that is not well formed
/// only, Error{system} when the file cannot be read.
ConfigReport inspect_config(const std::filesystem::path& file);

/// read_config for a text at hand; `file` decides the format and is named in messages.
FileConfig parse_config(std::string_view text, const std::filesystem::path& file);

/// Throws the notes as an Error{config}, where there are any: what `--strict` asks for.
void refuse_notes(const FileConfig& config);

}  // namespace acc::launcher
