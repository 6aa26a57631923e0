// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
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

/// The values of some settings.
using SettingMap = std::map<SettingId, Setting>;

/// The value of the setting in the map, if it is there.
template <class T>
std::optional<T> value_in(const SettingMap& map, SettingKey<T> key) {
  const auto entry = map.find(key);
  return entry == map.end() ? std::nullopt : std::optional(value_as<T>(entry->second.value));
}

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

  template <class T>
  T operator[](SettingKey<T> key) const {
    return value_as<T>(setting(key).value);
  }
  Setting setting(SettingId id) const;
  std::string origin(SettingId id) const;
  /// The value as text, for messages and variables; empty: none.
  std::string text(SettingId id) const;
  /// Whether a value was given, and is not null.
  bool given(SettingId id) const;
  /// Whether the value comes from a flag or an environment variable.
  bool is_explicit(SettingId id) const;

  template <class T>
  void set(SettingKey<T> key, const std::type_identity_t<T>& value, std::string origin) {
    values_[key] = {as_value(value), std::move(origin)};
  }
  /// The same; a flag or a variable that gave another value no longer counts.
  template <class T>
  void replace(SettingKey<T> key, const std::type_identity_t<T>& value, std::string origin) {
    explicit_.erase(key);
    set(key, value, std::move(origin));
  }
  /// Takes the default again.
  void reset(SettingId id) { values_.erase(id); }

  /// All settings by name.
  std::map<std::string_view, Setting> all() const;
  /// Variables that have no effect, one line each.
  const std::vector<std::string>& notes() const { return notes_; }

  bool operator==(const Settings&) const = default;

 private:
  /// Those that differ from their defaults, or were given.
  SettingMap values_ = {};
  /// Those given by a flag or a variable.
  std::set<SettingId> explicit_ = {};
  std::vector<std::string> notes_ = {};
};

/// How a boolean is written to a variable: as in Python (`True`), or in lower case.
enum class TruthStyle { python, lower };

std::string truth_text(bool value, TruthStyle style);

/// The value of the setting as text for a variable.
std::string variable_text(const Settings& settings, const SettingSpec& spec, TruthStyle style);

/// The variables of all settings of the section that have a value.
Environment section_variables(const Settings& settings, SettingKey<Section> section, TruthStyle style);

/// The settings of a config file, with those in its sections; each origin is `file:line`.
SettingMap file_settings(const FileConfig& file);

/// These settings in the order of the file.
std::vector<SettingId> file_order(const FileConfig& file);

}  // namespace acc::launcher
