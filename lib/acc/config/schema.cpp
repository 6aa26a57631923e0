// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace acc::launcher {
namespace {

// Flags of accelerate launch alone (`accelerate`), or of torchrun too (`both`). A switch takes no value.
constexpr Flag accelerate(std::string_view spelling) {
  return {.spelling = spelling};
}
constexpr Flag accelerate_switch(std::string_view spelling) {
  return {.spelling = spelling, .implicit_value = true};
}
constexpr Flag both(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true};
}
constexpr Flag both_switch(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .implicit_value = true};
}
// Flags of torchrun after 2.11.
constexpr Flag later(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .new_to_torchrun = true};
}
// Flags of acc itself, in both dialects.
constexpr Flag own(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .new_to_torchrun = true};
}
constexpr Flag own_switch(std::string_view spelling) {
  return {.spelling = spelling, .torchrun = true, .new_to_torchrun = true, .implicit_value = true};
}

template <class T>
constexpr ValueType value_type() {
  if constexpr (kIsOptional<T>) return value_type<typename T::value_type>();
  if constexpr (std::is_same_v<T, bool>) return ValueType::boolean;
  if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, IntegerOrText>)
    return ValueType::integer;
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, NumberOrText>) return ValueType::number;
  if constexpr (std::is_same_v<T, TruthOrText>) return ValueType::word_or_truth;
  if constexpr (std::is_same_v<T, std::vector<std::string>>) return ValueType::list;
  if constexpr (std::is_same_v<T, Truths>) return ValueType::truths;
  if constexpr (std::is_same_v<T, Section>) return ValueType::section;
  return ValueType::text;
}

constexpr std::string_view without_underscore(std::string_view name) {
  return name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
}

// A row without a name holds the heading and the section of the rows below it.
#define ACC_GROUP(heading) SettingSpec{.group = (heading)},
#define ACC_SECTION(title, heading, ...)                                                                   \
  SettingSpec{.id = key::title, .name = #title, .type = ValueType::section, .in_file = true, __VA_ARGS__}, \
      SettingSpec{.section = #title, .group = (heading)},
#define ACC_SETTING(title, value, ...) \
  SettingSpec{.id = key::title, .name = without_underscore(#title), .type = value_type<value>(), __VA_ARGS__},
constexpr SettingSpec kWritten[] = {
#include "acc/config/settings.def"
};
#undef ACC_GROUP
#undef ACC_SECTION
#undef ACC_SETTING

constexpr std::size_t kSettings = static_cast<std::size_t>(
    std::ranges::count_if(kWritten, [](const SettingSpec& row) { return !row.name.empty(); }));

consteval std::array<SettingSpec, kSettings> complete() {
  std::array<SettingSpec, kSettings> rows = {};
  SettingSpec above;
  for (const SettingSpec& written : kWritten) {
    if (written.name.empty()) {
      above = written;
      continue;
    }
    SettingSpec& row = rows.at(written.id.index);
    row = written;
    if (row.type == ValueType::section) continue;
    row.group = above.group;
    row.section = above.section;
    if (!above.section.empty()) row.in_file = true;
  }
  return rows;
}

constexpr std::array<SettingSpec, kSettings> kSchema = complete();

// Whether the row fits the type of its values.
template <class T>
consteval bool fits(const SettingSpec& row) {
  const Constant& preset = row.default_value;
  if constexpr (std::is_enum_v<T>) return std::holds_alternative<std::string_view>(preset) && row.pet.empty();
  if constexpr (kIsOptional<T>) return preset.index() == 0;
  if constexpr (std::is_same_v<T, std::int64_t>) return std::holds_alternative<std::int64_t>(preset);
  if constexpr (std::is_same_v<T, double>)
    return std::holds_alternative<double>(preset) || std::holds_alternative<std::int64_t>(preset);
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, Truths>)
    return std::holds_alternative<T>(preset);
  if constexpr (std::is_same_v<T, std::string>)
    return preset.index() == 0 || std::holds_alternative<std::string_view>(preset);
  if constexpr (std::is_same_v<T, TruthOrText>) return std::holds_alternative<bool>(preset);
  return preset.index() == 0;
}

consteval bool allows_its_default(const SettingSpec& row) {
  const auto* word = std::get_if<std::string_view>(&row.default_value);
  return word == nullptr || row.allowed.empty() || std::ranges::find(row.allowed, *word) != row.allowed.end();
}

#define ACC_GROUP(...)
#define ACC_SECTION(...)
#define ACC_SETTING(title, value, ...)                                                                   \
  static_assert(fits<value>(kSchema[key::title.index]), #title " needs a default of its type, or none"); \
  static_assert(allows_its_default(kSchema[key::title.index]), #title " does not allow its default");
#include "acc/config/settings.def"
#undef ACC_GROUP
#undef ACC_SECTION
#undef ACC_SETTING

Value constant_value(const Constant& constant) {
  const auto converted = []<class T>(const T& value) -> Value {
    if constexpr (std::is_same_v<T, std::monostate>)
      return nullptr;
    else
      return value;
  };
  return std::visit(converted, constant);
}

template <typename Condition>
const SettingSpec* find_row(const Condition& holds) {
  const auto* const found = std::ranges::find_if(kSchema, holds);
  return found == kSchema.end() ? nullptr : found;
}

// The prefix of the names of all settings of the section.
std::string prefix_of(std::string_view section) {
  if (section == "parallelism_config") return "parallelism_config_";
  return std::string(section.substr(0, section.rfind("config")));
}

}  // namespace

std::span<const SettingSpec> schema() {
  return kSchema;
}

const SettingSpec& row_of(SettingId id) {
  return kSchema.at(id.index);
}

std::string_view file_key(const SettingSpec& spec) {
  return spec.key.empty() ? spec.name : spec.key;
}

bool at_top_level(const SettingSpec& spec, ConfigKind kind) {
  return spec.section.empty() && (kind == ConfigKind::cluster ? spec.in_file : spec.in_sagemaker);
}

const SettingSpec* find_file_key(std::string_view key, ConfigKind kind) {
  return find_row([&](const SettingSpec& spec) { return at_top_level(spec, kind) && file_key(spec) == key; });
}

const SettingSpec* find_section_key(std::string_view section, std::string_view key) {
  const std::string prefixed = prefix_of(section) + std::string(key);
  return find_row([&](const SettingSpec& spec) {
    if (spec.section != section) return false;
    return file_key(spec) == key || spec.name == key || spec.name == prefixed ||
           std::ranges::find(spec.former, key) != spec.former.end() ||
           std::ranges::find(spec.former, prefixed) != spec.former.end();
  });
}

std::vector<std::string> file_keys(ConfigKind kind) {
  std::vector<std::string> keys;
  for (const SettingSpec& spec : schema()) {
    if (at_top_level(spec, kind)) keys.emplace_back(file_key(spec));
  }
  std::ranges::sort(keys);
  return keys;
}

std::vector<std::string> section_keys(std::string_view section) {
  std::vector<std::string> keys;
  for (const SettingSpec& spec : schema()) {
    if (spec.section == section) keys.emplace_back(file_key(spec));
  }
  return keys;
}

Value default_value(const SettingSpec& spec) {
  return spec.type == ValueType::section ? Value::object() : constant_value(spec.default_value);
}

Value implicit_value(const Flag& flag) {
  return constant_value(flag.implicit_value);
}

}  // namespace acc::launcher
