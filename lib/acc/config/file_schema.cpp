// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "acc/config/conversion.hpp"
#include "acc/config/schema.hpp"

namespace acc::launcher {
namespace {

// A text setting accepts an unquoted number or `no`, which YAML reads as a number or boolean.
Value types_of(ValueType type) {
  switch (type) {
    case ValueType::integer:
      return "integer";
    case ValueType::number:
      return "number";
    case ValueType::boolean:
    case ValueType::word_or_truth:
      return Value::array({"boolean", "string"});
    case ValueType::list:
    case ValueType::truths:
      return "array";
    case ValueType::section:
      return "object";
    case ValueType::text:
      break;
  }
  return Value::array({"string", "integer", "boolean", "null"});
}

// An enum cannot ignore case; as one alternative of anyOf it still gives editors the words to offer.
Value words_schema(const SettingSpec& spec) {
  Value words = Value::array();
  for (const std::string_view word : spec.allowed) words.push_back(word);
  return words;
}

Value property_of(const SettingSpec& spec);

Value properties_of_section(std::string_view section) {
  Value properties = Value::object();
  for (const std::string& key : section_keys(section))
    properties[key] = property_of(*find_section_key(section, key));
  return properties;
}

Value property_of(const SettingSpec& spec) {
  Value property = {{"description", spec.help}};
  if (!spec.since.empty()) property["x-since"] = spec.since;
  if (std::empty(spec.allowed)) {
    property["type"] = types_of(spec.type);
  } else if (spec.ignore_case || is_number(spec)) {
    property["anyOf"] = Value::array({{{"enum", words_schema(spec)}}, {{"type", types_of(spec.type)}}});
  } else {
    property["enum"] = words_schema(spec);
  }
  if (spec.min) property["minimum"] = *spec.min;
  if (spec.max) property["maximum"] = *spec.max;
  if (const Value preset = default_value(spec); !preset.is_null()) property["default"] = preset;
  if (const Value inner = properties_of_section(spec.name); !inner.empty()) {
    property["properties"] = inner;
    property["additionalProperties"] = false;
  }
  return property;
}

Value schema_of(ConfigKind kind, const Value& required) {
  Value properties = Value::object();
  for (const std::string& key : file_keys(kind)) properties[key] = property_of(*find_file_key(key, kind));
  return {{"properties", properties}, {"required", required}, {"additionalProperties", false}};
}

}  // namespace

Value file_schema() {
  const Value sagemaker = {
      {"properties", {{"compute_environment", {{"const", word_of(ComputeEnvironment::amazon_sagemaker)}}}}},
      {"required", Value::array({"compute_environment"})}};
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "Config file of acc and of accelerate"},
          {"type", "object"},
          {"if", sagemaker},
          {"then", schema_of(ConfigKind::sagemaker,
                             Value::array({"distributed_type", "ec2_instance_type", "iam_role_name"}))},
          {"else", schema_of(ConfigKind::cluster, Value::array({"distributed_type"}))}};
}

}  // namespace acc::launcher
