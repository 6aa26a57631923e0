// SPDX-License-Identifier: Apache-2.0
#include "acc/config/typed_value.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "acc/base/text.hpp"
#include "acc/config/yaml_scalar.hpp"

namespace acc {
namespace {

using Kind = DocumentNode::Kind;
using Result = std::variant<Value, Mismatch>;

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::list:
      return "a list";
    case Kind::mapping:
      return "a mapping";
    case Kind::scalar:
      break;
  }
  return "a single value";
}

Mismatch wrong(const SettingSpec& spec, std::string_view wanted, const DocumentNode& node) {
  const std::string found =
      node.kind == Kind::scalar ? fmt::format("'{}'", node.text) : std::string(kind_name(node.kind));
  return {.what = fmt::format("{} must be {}, not {}", spec.name, wanted, found)};
}

// YAML reads `no` as false; a setting that knows the word means the word.
std::string text_of(const SettingSpec& spec, const DocumentNode& node) {
  if (node.quoted || node.value != false) return node.text;
  const auto no = std::ranges::find_if(spec.allowed, [](auto word) { return to_lower(word) == "no"; });
  return no == spec.allowed.end() ? node.text : std::string(*no);
}

Result text_value(const SettingSpec& spec, const DocumentNode& node) {
  std::string text = text_of(spec, node);
  if (spec.allowed.empty() || std::ranges::find(spec.allowed, text) != spec.allowed.end())
    return Value(std::move(text));
  const std::vector<std::string> allowed(spec.allowed.begin(), spec.allowed.end());
  return Mismatch{.what = fmt::format("{} must be one of {}, not '{}'", spec.name, join(allowed, ", "), text),
                  .hint = did_you_mean(text, allowed)};
}

Result integer_value(const SettingSpec& spec, const DocumentNode& node) {
  std::optional<std::int64_t> number;
  if (node.value.is_number_integer()) number = node.value.get<std::int64_t>();
  if (node.quoted) number = parse_integer(node.text);
  if (!number) return wrong(spec, "a whole number", node);
  if (spec.least && *number < *spec.least)
    return Mismatch{.what = fmt::format("{} must be at least {}, not {}", spec.name, *spec.least, *number)};
  if (spec.most && *number > *spec.most)
    return Mismatch{.what = fmt::format("{} must be at most {}, not {}", spec.name, *spec.most, *number)};
  return Value(*number);
}

Result number_value(const SettingSpec& spec, const DocumentNode& node) {
  if (node.value.is_number()) return Value(node.value.get<double>());
  // YAML 1.1 reads 1e-5 as text.
  if (const auto number = parse_number(node.text)) return Value(*number);
  return wrong(spec, "a number", node);
}

Result truth_value(const SettingSpec& spec, const DocumentNode& node) {
  if (node.value.is_boolean()) return node.value;
  if (const auto truth = parse_truth(node.text)) return Value(*truth);
  return wrong(spec, "true or false", node);
}

Result list_value(const SettingSpec& spec, const DocumentNode& node) {
  Value list = Value::array();
  for (const DocumentNode& item : node.items) {
    if (item.kind != Kind::scalar) return wrong(spec, "a list of texts", item);
    list.push_back(item.text);
  }
  return list;
}

// Keys that are settings of their own (dynamo_backend) are text where the setting is.
Result section_value(const DocumentNode& node) {
  Value section = Value::object();
  for (const DocumentNode& item : node.items) {
    const SettingSpec* inner = find_setting(item.key);
    const bool is_text = inner != nullptr && inner->type == ValueType::text && item.kind == Kind::scalar;
    section[item.key] = is_text && !item.is_null() ? Value(item.text) : to_value(item);
  }
  return section;
}

}  // namespace

Result typed_value(const SettingSpec& spec, const DocumentNode& node) {
  if (node.is_null()) return Value(nullptr);
  const Kind wanted = spec.type == ValueType::section ? Kind::mapping
                      : spec.type == ValueType::list  ? Kind::list
                                                      : Kind::scalar;
  if (node.kind != wanted) return wrong(spec, kind_name(wanted), node);
  switch (spec.type) {
    case ValueType::text:
      return text_value(spec, node);
    case ValueType::integer:
      return integer_value(spec, node);
    case ValueType::number:
      return number_value(spec, node);
    case ValueType::boolean:
      return truth_value(spec, node);
    case ValueType::list:
      return list_value(spec, node);
    case ValueType::section:
      return section_value(node);
  }
  return Value(nullptr);
}

Result typed_value(const SettingSpec& spec, std::string_view text) {
  DocumentNode node{.value = read_plain_scalar(text), .text = std::string(text)};
  if (spec.type == ValueType::integer) node.quoted = true;
  if (spec.type != ValueType::list || node.is_null()) return typed_value(spec, node);
  DocumentNode list{.kind = Kind::list};
  for (std::string& part : split(text, ',')) list.items.push_back({.text = std::move(part), .quoted = true});
  return typed_value(spec, list);
}

}  // namespace acc
