// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/config/schema.hpp"
#include "acc/config/value.hpp"

namespace acc::launcher {

/// Values by the name of their setting.
using ConfigValues = std::map<std::string, Value, std::less<>>;

/// The value of a key at the top level, if it has one. Files of SageMaker jobs have another distributed_type.
template <class T>
auto value_in(const ConfigValues& values, SettingKey<T> key) {
  using Optional = std::conditional_t<kIsOptional<T>, T, std::optional<T>>;
  const auto found = values.find(file_key(row_of(key)));
  return found == values.end() ? Optional() : value_as<Optional>(found->second);
}

/// Sets a key at the top level.
template <class T>
void set_value(ConfigValues& values, SettingKey<T> key, const std::type_identity_t<T>& value) {
  values.insert_or_assign(std::string(file_key(row_of(key))), as_value(value));
}

/// The content of a config file, without defaults and nulls.
struct FileConfig {
  std::filesystem::path path = {};
  ConfigValues values = {};
  /// The line of each value; keys of sections as `section.key`.
  std::map<std::string, int, std::less<>> positions = {};
  /// The keys of `positions` in the order of the file.
  std::vector<std::string> order = {};
  /// Unknown keys of sections, keys of older versions, and all but the last of equal keys.
  std::vector<Problem> notes = {};
};

/// A config file and all findings about it.
struct ConfigReport {
  /// The part that could be read. Its notes do not repeat `misspelt`.
  FileConfig config = {};
  /// The errors.
  std::vector<Problem> problems = {};
  /// Unknown keys of sections that are close to a known one.
  std::vector<Problem> misspelt = {};
};

/// A config file, and what it contains.
struct ConfigText {
  std::filesystem::path path = {};
  std::string text = {};

  bool operator==(const ConfigText&) const = default;
};

/// By whose rules a config file is read. accelerate accepts any number of processes, and a launch judges it.
enum class FileRules { acc, accelerate };

/// Reads a config file of accelerate, of any version: JSON if the name ends in `.json`, else YAML. Each
/// value has the type of its setting, and each key of a section its current name. Throws Error{config} with
/// all errors of the file, each with `file:line:column` and, for an unknown key, the nearest known one;
/// Error{system} if the file cannot be read.
FileConfig read_config(const std::filesystem::path& file);

/// The same, but returns the errors. Throws Error{config} only for malformed text, Error{system} if the
/// file cannot be read.
ConfigReport inspect_config(const std::filesystem::path& file);

/// The same for a text in memory. `file` determines the format and is named in messages.
FileConfig parse_config(std::string_view text, const std::filesystem::path& file,
                        FileRules rules = FileRules::acc);

/// Sections, and use_cpu, that have no effect on a job of the file's distributed_type. Flags that choose
/// another type, or precision, can give them one.
std::vector<Problem> keys_without_effect(const FileConfig& config);

/// Throws the notes as an Error{config} if there are any (`--strict`).
void refuse_notes(const FileConfig& config);

/// Contradictions between values that are valid by themselves. `acc config check` reports them besides the
/// errors of read_config(); a launch does not, since flags may override the values.
std::vector<Problem> contradictions(const FileConfig& config);

}  // namespace acc::launcher
