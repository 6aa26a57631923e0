// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "acc/config/setting_types.hpp"
#include "acc/config/value.hpp"

namespace acc::launcher {

/// The type of a setting. `word_or_truth` is one of the allowed words or a boolean; a `list` holds texts,
/// `truths` booleans. The flag of a `list` may be repeated.
enum class ValueType { text, integer, number, boolean, word_or_truth, list, truths, section };

/// A default, or the value of a flag without an argument, of the type of its row; monostate: none. A number
/// may be written as an integer, and is then shown as one.
using Constant = std::variant<std::monostate, bool, std::int64_t, double, std::string_view, Truths>;

/// Identifies a setting: its position in the schema.
struct SettingId {
  std::uint16_t index = 0;

  auto operator<=>(const SettingId&) const = default;
};

/// A setting whose values have type T. Each row of settings.def is one: `key::num_processes`.
template <class T>
struct SettingKey : SettingId {};

/// The rules of a command line: `acc launch` accepts the flags of accelerate and torchrun; `acc run` and
/// the name torchrun accept only those of torchrun.
enum class Dialect { launch, torchrun };

/// One spelling of a flag. `-` and `_` are interchangeable inside it.
struct Flag {
  std::string_view spelling = {};  ///< with its dashes: `--nproc-per-node`, `-m`
  bool torchrun = false;           ///< `acc run` has it
  bool launch = true;              ///< `acc launch` has it
  /// torchrun 2.11 does not have the flag; it is ignored when an abbreviation is ambiguous.
  bool new_to_torchrun = false;
  /// The value of the flag without an argument; none: the flag needs an argument.
  Constant implicit_value = {};

  constexpr bool needs_argument() const { return implicit_value.index() == 0; }
};

/// The flags of a setting.
class Flags {
 public:
  constexpr Flags() = default;
  constexpr Flags(const Flag& first, const Flag& second = {}) : flags_{first, second} {}

  constexpr const Flag* begin() const { return flags_.data(); }
  constexpr const Flag* end() const { return std::ranges::find(flags_, std::string_view(), &Flag::spelling); }
  constexpr bool empty() const { return flags_.front().spelling.empty(); }
  constexpr const Flag& front() const { return flags_.front(); }

 private:
  std::array<Flag, 2> flags_ = {};
};

/// A setting. These rows are the single source for the keys in code, reading, checking and writing config
/// files, questions, flags, help, PET_* variables, variables of workers and the JSON schema. They are written
/// in settings.def and the files that it includes:
///   ACC_GROUP(heading)                    the rows below are shown under this heading in the help
///   ACC_SECTION(name, heading, members)   a section of config files; the rows below are its keys
///   ACC_SETTING(name, type, members)      a setting, and `key::name`, whose values have this type
/// A name that is a keyword of C++ ends in `_`, as in `export_`.
struct SettingSpec {
  SettingId id = {};
  /// The key in config files, and the name in messages, `--dry_run` and tests.
  std::string_view name = {};
  ValueType type = ValueType::text;
  /// Whether config files contain the key; whether those of SageMaker jobs do.
  bool in_file = false;
  bool in_sagemaker = false;
  /// The section that contains the key; empty: the top level.
  std::string_view section = {};
  /// The key in the file if it differs from the name.
  std::string_view key = {};
  /// Names of the key in older versions.
  Words former = {};
  /// The first release of accelerate that read the key from a file; empty: none does.
  std::string_view since = {};
  Constant default_value = {};
  /// The allowed values; empty: any value of the type. For a number: words that are accepted too.
  Words allowed = {};
  /// The words are compared without regard to case, and stored as `allowed` spells them.
  bool ignore_case = false;
  /// Older versions wrote the 1-based index in `allowed`.
  bool numbered = false;
  /// The bounds of an integer.
  std::optional<std::int64_t> min = {};
  std::optional<std::int64_t> max = {};
  Flags flags = {};
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

/// All settings, in the order of the help.
std::span<const SettingSpec> schema();

/// The row of the setting.
const SettingSpec& row_of(SettingId id);

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
Value implicit_value(const Flag& flag);

/// The JSON schema of config files, for editors; configs/schema.json is a copy.
Value file_schema();

/// The keys of all settings.
namespace key {

#define ACC_GROUP(...)
#define ACC_SECTION(name, ...) name,
#define ACC_SETTING(name, ...) name,
enum class Position : std::uint16_t {
#include "acc/config/settings.def"
};
#undef ACC_SECTION
#undef ACC_SETTING

#define ACC_SECTION(name, ...) ACC_SETTING(name, Section, )
#define ACC_SETTING(name, type, ...) \
  inline constexpr SettingKey<type> name = {{static_cast<std::uint16_t>(Position::name)}};
#include "acc/config/settings.def"
#undef ACC_GROUP
#undef ACC_SECTION
#undef ACC_SETTING

}  // namespace key

}  // namespace acc::launcher
