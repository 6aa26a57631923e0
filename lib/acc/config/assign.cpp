// SPDX-License-Identifier: Apache-2.0
#include "acc/config/assign.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/config/conversion.hpp"
#include "acc/config/defaults.hpp"
#include "acc/config/schema.hpp"
#include "acc/config/value.hpp"

namespace acc::launcher {
namespace {

struct Target {
  std::string key = {};
  /// The key inside the section `key`; empty if `key` is not a section.
  std::string inner = {};
};

Target split_key(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {std::string(text), ""};
  return {std::string(text.substr(0, dot)), std::string(text.substr(dot + 1))};
}

// The hint for an unknown key. It may be a key of a section: `zero_stage` is `deepspeed_config.zero_stage`.
std::string nearest_path(const std::string& key, ConfigKind kind) {
  for (const SettingSpec& spec : schema()) {
    if (!spec.section.empty() && spec.in_file && (file_key(spec) == key || spec.name == key))
      return fmt::format("did you mean '{}.{}'?", spec.section, file_key(spec));
  }
  return did_you_mean(key, file_keys(kind));
}

// Returns the row of the key; null after adding to `problems` why there is none.
const SettingSpec* target_row(Target& target, ConfigKind kind, const std::string& where,
                              std::vector<Problem>& problems) {
  const SettingSpec* spec = find_file_key(target.key, kind);
  if (spec == nullptr) {
    problems.push_back({fmt::format("unknown key '{}'", target.key), where, nearest_path(target.key, kind)});
    return nullptr;
  }
  if (target.inner.empty()) return spec;
  if (spec->type != ValueType::section) {
    problems.push_back({fmt::format("{} is not a section", target.key), where, ""});
    return nullptr;
  }
  const std::vector<std::string> keys = section_keys(target.key);
  if (keys.empty()) return spec;
  const SettingSpec* inner = find_section_key(target.key, target.inner);
  if (inner == nullptr) {
    problems.push_back({fmt::format("'{}' is not a key of {}", target.inner, target.key), where,
                        did_you_mean(target.inner, keys)});
    return nullptr;
  }
  target.inner = file_key(*inner);
  return inner;
}

void put(ConfigValues& values, const Target& target, Value value) {
  if (target.inner.empty()) {
    if (value.is_null()) values.erase(target.key);
    if (!value.is_null()) values[target.key] = std::move(value);
    return;
  }
  Value& section = values[target.key];
  if (!section.is_object()) section = Value::object();
  section.erase(target.inner);
  if (!value.is_null()) section[target.inner] = std::move(value);
}

void assign_one(ConfigValues& values, const std::string& assignment, std::vector<Problem>& problems) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos) {
    problems.push_back(
        {"is not KEY=VALUE", assignment, "as in num_processes=8; `acc config --help` shows the commands"});
    return;
  }
  const std::string_view text = std::string_view(assignment).substr(equals + 1);
  Target target = split_key(trim(std::string_view(assignment).substr(0, equals)));
  const SettingSpec* spec = target_row(target, kind_of(values), assignment, problems);
  if (spec == nullptr) return;
  if (text.empty()) {
    if (target.key == "distributed_type")
      problems.push_back({"distributed_type cannot be removed", assignment, ""});
    return put(values, target, nullptr);
  }
  if (spec->type == ValueType::section) {
    if (!target.inner.empty()) return put(values, target, read_plain_scalar(text));
    problems.push_back({fmt::format("{} is a section", target.key), assignment,
                        fmt::format("name a key inside, as in {}.KEY=VALUE", target.key)});
    return;
  }
  auto value = convert(*spec, text);
  if (const auto* mismatch = std::get_if<Mismatch>(&value)) {
    problems.push_back({mismatch->what, assignment, mismatch->hint});
  } else {
    put(values, target, std::get<Value>(std::move(value)));
  }
}

}  // namespace

void assign(ConfigValues& values, const std::vector<std::string>& assignments) {
  ConfigValues changed = values;
  std::vector<Problem> problems;
  for (const std::string& assignment : assignments) assign_one(changed, assignment, problems);
  if (!problems.empty()) throw Error(ErrorKind::usage, problems);
  values = std::move(changed);
}

Value find_value(const ConfigValues& values, std::string_view key) {
  const ConfigValues effective = with_defaults(values);
  Target target = split_key(key);
  std::vector<Problem> problems;
  if (target_row(target, kind_of(values), "", problems) == nullptr) throw Error(ErrorKind::usage, problems);
  const auto found = effective.find(target.key);
  if (found == effective.end()) return nullptr;
  if (target.inner.empty()) return found->second;
  return found->second.is_object() ? found->second.value(target.inner, Value()) : Value();
}

std::string display(const Value& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace acc::launcher
