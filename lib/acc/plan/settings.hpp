// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"

namespace acc::launcher {

struct LaunchInputs;

/// A value with its origin: `--num_processes`, `PET_NNODES`, `job.yaml:3`, `machine`, `default`.
struct Setting {
  Value value = nullptr;
  std::string origin = "default";

  bool operator==(const Setting&) const = default;
};

/// Every setting of the schema with its effective value and origin.
class Settings {
 public:
  /// The defaults.
  Settings() = default;
  /// Precedence: flag, ACC_* variable, PET_* variable, file, default; ask_engine() adds the engine's values.
  /// Under accelerate's rules a flag also overrides variables of settings with the same or a conflicting
  /// meaning: `--num_processes` overrides PET_NPROC_PER_NODE. Throws Error{usage} if the value of a variable
  /// is invalid.
  explicit Settings(const LaunchInputs& inputs);

  Setting operator[](std::string_view name) const;
  /// Whether a value was given, and is not null.
  bool given(std::string_view name) const;
  /// Whether the value comes from a flag or an environment variable.
  bool is_explicit(std::string_view name) const;

  std::string text(std::string_view name) const;
  bool truth(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  std::string origin(std::string_view name) const { return (*this)[name].origin; }

  void set(std::string_view name, Value value, std::string origin);
  /// The same; a flag or a variable that gave another value no longer counts.
  void replace(std::string_view name, Value value, std::string origin);

  /// All settings by name.
  std::map<std::string_view, Setting> all() const;
  /// Variables that have no effect, one line each.
  const std::vector<std::string>& notes() const { return notes_; }

  bool operator==(const Settings&) const = default;

 private:
  /// Those that differ from their defaults, or were given.
  std::map<std::string, Setting, std::less<>> given_ = {};
  /// The names of those given by a flag or a variable.
  std::set<std::string, std::less<>> explicit_ = {};
  std::vector<std::string> notes_ = {};
};

/// How a boolean is written to a variable: as in Python (`True`), or in lower case.
enum class TruthStyle { python, lower };

std::string truth_text(bool value, TruthStyle style);

/// The value of the setting as text for a variable.
std::string variable_text(const Settings& settings, const SettingSpec& spec, TruthStyle style);

/// The variables of all settings of the section that have a value.
Environment section_variables(const Settings& settings, std::string_view section, TruthStyle style);

/// The settings of a config file by name; each origin is `file:line`. Keys of sections are included under
/// the names of their settings.
std::map<std::string, Setting, std::less<>> file_settings(const FileConfig& file);

/// The names of these settings in the order of the file.
std::vector<std::string> file_order(const FileConfig& file);

}  // namespace acc::launcher
