// SPDX-License-Identifier: Apache-2.0
#include "acc/config/assign.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/config/defaults.hpp"
#include "acc/config/schema.hpp"
#include "acc/config/typed_value.hpp"
#include "acc/config/yaml_scalar.hpp"

namespace acc {
namespace {

struct Target {
  std::string key = {};
  /// Inside of the section `key`; empty: the key itself.
  std::string inner = {};
};

Target split_key(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {std::string(text), ""};
  return {std::string(text.substr(0, dot)), std::string(text.substr(dot + 1))};
}

// The row of the key, or why there is none.
const SettingSpec* find_row(const Target& target, const std::string& where, std::vector<Problem>& problems) {
  const SettingSpec* spec = find_setting(target.key);
  if (spec == nullptr || !spec->in_file) {
    problems.push_back(
        {fmt::format("unknown key '{}'", target.key), where, did_you_mean(target.key, file_keys())});
    return nullptr;
  }
  if (!target.inner.empty() && spec->type != ValueType::section) {
    problems.push_back({fmt::format("{} has no keys inside", target.key), where, ""});
    return nullptr;
  }
  return spec;
}

void assign_inner(ConfigValues& values, const Target& target, std::string_view text) {
  Value& section = values[target.key];
  if (!section.is_object()) section = Value::object();
  section.erase(target.inner);
  if (!text.empty()) section[target.inner] = read_plain_scalar(text);
}

void assign_one(ConfigValues& values, const std::string& assignment, std::vector<Problem>& problems) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos) {
    problems.push_back({"is not KEY=VALUE", assignment, ""});
    return;
  }
  const std::string_view text = std::string_view(assignment).substr(equals + 1);
  const Target target = split_key(trim(std::string_view(assignment).substr(0, equals)));
  const SettingSpec* spec = find_row(target, assignment, problems);
  if (spec == nullptr) return;
  if (!target.inner.empty()) return assign_inner(values, target, text);
  if (text.empty()) {
    if (target.key == "distributed_type")
      problems.push_back({"distributed_type cannot be taken out", assignment, ""});
    values.erase(target.key);
    return;
  }
  auto value = typed_value(*spec, text);
  if (const auto* mismatch = std::get_if<Mismatch>(&value)) {
    problems.push_back({mismatch->what, assignment, mismatch->hint});
  } else {
    values[target.key] = std::get<Value>(std::move(value));
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
  const ConfigValues all = with_defaults(values);
  const Target target = split_key(key);
  const auto found = all.find(target.key);
  if (found == all.end()) {
    std::vector<Problem> problems;
    if (find_row(target, "", problems) == nullptr) throw Error(ErrorKind::usage, problems);
    return nullptr;
  }
  if (target.inner.empty()) return found->second;
  return found->second.is_object() ? found->second.value(target.inner, Value()) : Value();
}

std::string display(const Value& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace acc
