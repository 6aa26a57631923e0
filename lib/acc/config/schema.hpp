// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "acc/config/value.hpp"

namespace acc::launcher {

/// The type of a setting. `word_or_truth` is one of the allowed words or a boolean; a `list` holds texts,
/// `truths` booleans. The flag of a `list` may be repeated.
enum class ValueType { text, integer, number, boolean, word_or_truth, list, truths, section };

/// The rules of a command line: `acc launch` accepts the flags of accelerate and torchrun; `acc run` and
/// the name torchrun accept only those of torchrun.
enum class Dialect { launch, torchrun };

/// One spelling of a flag. `-` and `_` are interchangeable inside it.
struct Flag {
  std::string_view spelling;  ///< with its dashes: `--nproc-per-node`, `-m`
  bool torchrun = false;      ///< `acc run` has it
  bool launch = true;         ///< `acc launch` has it
  /// torchrun 2.11 does not have the flag; it is ignored when an abbreviation is ambiguous.
  bool new_to_torchrun = false;
  /// The value of the flag without an argument (as JSON); absent: the flag needs an argument.
  std::optional<std::string_view> implicit_value = {};
};

/// A setting. These rows are the single source for reading, checking and writing config files, questions,
/// flags, help, PET_* variables, variables of workers and the JSON schema. The lists of a row live as long as
/// the variable that was initialized with them.
struct SettingSpec {
  /// The key in config files, and the name in messages, `--dry_run` and tests.
  std::string_view name;
  ValueType type = ValueType::text;
  /// Whether config files contain the key; whether those of SageMaker jobs do.
  bool in_file = false;
  bool in_sagemaker = false;
  /// The section that contains the key; empty: the top level.
  std::string_view section = {};
  /// The key in the file if it differs from the name.
  std::string_view key = {};
  /// Names of the key in older versions.
  std::initializer_list<std::string_view> former = {};
  /// The first release of accelerate that read the key from a file; empty: none does.
  std::string_view since = {};
  /// The default, as JSON.
  std::string_view default_value = "null";
  /// The allowed values; empty: any value of the type. For a number: words that are accepted too.
  std::initializer_list<std::string_view> allowed = {};
  /// The words are compared without regard to case, and stored as `allowed` spells them.
  bool ignore_case = false;
  /// Older versions wrote the 1-based index in `allowed`.
  bool numbered = false;
  /// The bounds of an integer.
  std::optional<std::int64_t> min = {};
  std::optional<std::int64_t> max = {};
  std::initializer_list<Flag> flags = {};
  /// The environment variable of acc: `ACC_ENGINE`.
  std::string_view variable = {};
  /// The environment variable of torchrun: `PET_NPROC_PER_NODE`.
  std::string_view pet = {};
  /// The environment variable through which workers get the value.
  std::string_view environment = {};
  /// Heading in the help.
  std::string_view group = {};
  /// One sentence, for help, questions and the schema.
  std::string_view help = {};
  /// Among the few flags of the short help.
  bool essential = false;
};

/// Rows of the table as a range of `const SettingSpec&`.
using SettingSpecs = std::ranges::transform_view<std::span<const SettingSpec* const>,
                                                 const SettingSpec& (*)(const SettingSpec*)>;

/// All settings, in the order of the help.
SettingSpecs schema();

/// Finds a setting by name; null if there is none.
const SettingSpec* find_setting(std::string_view name);

/// The two kinds of config files: for jobs that acc starts, and for jobs that SageMaker starts.
enum class ConfigKind { cluster, sagemaker };

/// The key of the setting in config files.
std::string_view file_key(const SettingSpec& spec);

/// Whether the setting is a top-level key in files of this kind.
bool at_top_level(const SettingSpec& spec, ConfigKind kind);

/// Finds a setting by its top-level key; null if there is none.
const SettingSpec* find_file_key(std::string_view key, ConfigKind kind = ConfigKind::cluster);

/// Finds a setting by its key in a section; null if there is none. The section's prefix is optional
/// (`version` and `fsdp_version` in `fsdp_config`), and names of older versions are accepted.
const SettingSpec* find_section_key(std::string_view section, std::string_view key);

/// The top-level keys of files of this kind, sorted.
std::vector<std::string> file_keys(ConfigKind kind = ConfigKind::cluster);

/// The keys of a section, in the order of the table. Empty: any key is allowed.
std::vector<std::string> section_keys(std::string_view section);

/// The default of the setting.
Value default_value(const SettingSpec& spec);

/// The value of the flag without an argument; null if it needs one.
Value implicit_value(const SettingSpec& spec, const Flag& flag);

/// The JSON schema of config files, for editors; configs/schema.json is a copy.
Value file_schema();

}  // namespace acc::launcher
