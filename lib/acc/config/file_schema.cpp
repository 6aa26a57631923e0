// SPDX-License-Identifier: Apache-2.0
#include "acc/config/file_schema.hpp"

#include <string>

#include "acc/config/schema.hpp"

namespace acc {
namespace {

// YAML reads an unquoted number or `no` as such where text belongs; acc takes it as text.
Value types_of(ValueType type) {
  switch (type) {
    case ValueType::integer:
      return "integer";
    case ValueType::number:
      return "number";
    case ValueType::boolean:
      return Value::array({"boolean", "string"});
    case ValueType::list:
      return "array";
    case ValueType::section:
      return "object";
    case ValueType::text:
      break;
  }
  return Value::array({"string", "integer", "boolean", "null"});
}

Value property_of(const SettingSpec& spec) {
  Value property = {{"description", spec.help}};
  if (spec.allowed.empty()) {
    property["type"] = types_of(spec.type);
  } else {
    property["enum"] = Value::array();
    for (const std::string_view word : spec.allowed) property["enum"].push_back(word);
  }
  if (spec.least) property["minimum"] = *spec.least;
  if (spec.most) property["maximum"] = *spec.most;
  if (const Value preset = default_value(spec); !preset.is_null()) property["default"] = preset;
  return property;
}

}  // namespace

Value file_schema() {
  Value properties = Value::object();
  for (const SettingSpec& spec : schema()) {
    if (spec.in_file) properties[std::string(spec.name)] = property_of(spec);
  }
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "Config file of acc and of accelerate"},
          {"type", "object"},
          {"properties", properties},
          {"required", Value::array({"distributed_type"})},
          {"additionalProperties", false}};
}

}  // namespace acc
