// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "acc/config/value.hpp"

namespace acc::launcher {

/// What a value must be. `word_or_truth` is one of the allowed words, or a truth value; `list` holds texts,
/// `truths` truth values. A flag of a `list` may be given several times.
enum class ValueType { text, integer, number, boolean, word_or_truth, list, truths, section };

/// Whose rules a command line follows: `acc launch` takes both peers' flags, `acc run` and the name torchrun
/// take torchrun's alone.
enum class Dialect { launch, torchrun };

/// One spelling of a flag. Each `-` inside it may be written `_` and the other way round.
struct Flag {
  std::string_view spelling;  ///< with its dashes: `--nproc-per-node`, `-m`
  bool torchrun = false;      ///< `acc run` has it
  bool launch = true;         ///< `acc launch` has it
  /// torchrun 2.11 does not have it, and its flags may be shortened as if this one were not there.
  bool new_to_torchrun = false;
  /// The value that the bare flag means (as JSON); absent: the flag takes a value.
  std::optional<std::string_view> means = {};
};

/// One row per setting; everything that names settings is made from these rows: the reader's checks, the
/// writer, the questions, flags and help, PET_* variables, what workers see, the schema for editors.
struct SettingSpec {
  /// The key in the file, and the name in every message, in `--dry_run` and in tests.
  std::string_view name;
  ValueType type = ValueType::text;
  /// The key stands in accelerate's files; in those of SageMaker jobs.
  bool in_file = false;
  bool in_sagemaker = false;
  /// The section around the key; empty: the top level.
  std::string_view section = {};
  /// The key in the file, where it is another word than the name.
  std::string_view key = {};
  /// Keys of older versions that mean the same.
  std::vector<std::string_view> former = {};
  /// The first release of accelerate that read the key from a file; empty: the setting is in no file.
  std::string_view since = {};
  /// As JSON: what holds when nobody says anything. "null": nothing.
  std::string_view otherwise = "null";
  /// The only values allowed; empty: any of the type. Of a number: words that are taken besides.
  std::vector<std::string_view> allowed = {};
  /// The words are taken in any case, and kept as they stand in `allowed`.
  bool any_case = false;
  /// Older versions wrote the word's place in `allowed`, from 1.
  bool numbered = false;
  /// The smallest and the largest whole number allowed.
  std::optional<std::int64_t> least = {};
  std::optional<std::int64_t> most = {};
  std::vector<Flag> flags = {};
  /// torchrun's variable for it, whole: `PET_NPROC_PER_NODE`.
  std::string_view pet = {};
  /// The variable in which workers see it, where it is handed on as it is.
  std::string_view environment = {};
  /// Heading under which the help shows it.
  std::string_view group = {};
  /// One sentence, for help, questions and the schema.
  std::string_view help = {};
};

/// Every setting, in the order in which help shows them.
std::span<const SettingSpec> schema();

/// The row of that name, or null.
const SettingSpec* find_setting(std::string_view name);

/// accelerate's two kinds of files: of jobs that start here, of jobs that SageMaker starts.
enum class ConfigKind { cluster, sagemaker };

/// The key under which a file holds the setting.
std::string_view file_key(const SettingSpec& spec);

/// Whether the file holds the setting at its top level.
bool at_top_level(const SettingSpec& spec, ConfigKind kind);

/// The row of a key at top level, or null.
const SettingSpec* find_file_key(std::string_view key, ConfigKind kind = ConfigKind::cluster);

/// The row of a key inside of a section, or null: also when it is spelt with or without the section's prefix
/// (`version` and `fsdp_version` in `fsdp_config`), or as older versions spelt it.
const SettingSpec* find_section_key(std::string_view section, std::string_view key);

/// The names of the keys that accelerate's files may hold at top level, sorted.
std::vector<std::string> file_keys(ConfigKind kind = ConfigKind::cluster);

/// The keys of a section, in the order of the table. Empty: the section may hold anything.
std::vector<std::string> section_keys(std::string_view section);

/// The default of the row as a value.
Value default_value(const SettingSpec& spec);

}  // namespace acc::launcher
