// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace acc::test {

/// Validates `value` by a JSON Schema; returns the errors, or an empty text. Supports type, const, required,
/// properties, additionalProperties: false, items, oneOf and $ref into $defs: all that ours use.
class JsonSchema {
 public:
  explicit JsonSchema(nlohmann::json root) : root_(std::move(root)) {}

  std::string violation(const nlohmann::json& value) const { return violation(value, root_, "line"); }

 private:
  using Json = nlohmann::json;

  static bool is_type(const Json& value, const std::string& type) {
    return (type == "integer" && value.is_number_integer()) || (type == "number" && value.is_number()) ||
           (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "array" && value.is_array()) || (type == "object" && value.is_object()) ||
           (type == "null" && value.is_null());
  }

  std::string violation(const Json& value, const Json& schema, const std::string& where) const {
    if (schema.contains("$ref")) {
      const auto name = schema["$ref"].get<std::string>().substr(std::string("#/$defs/").size());
      return violation(value, root_["$defs"].at(name), where);
    }
    if (schema.contains("oneOf")) return one_of(value, schema["oneOf"], where);
    if (schema.contains("const") && value != schema["const"])
      return where + " is not " + schema["const"].dump();
    if (schema.contains("type")) {
      const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
      bool fits = false;
      for (const Json& type : types) fits = fits || is_type(value, type.get<std::string>());
      if (!fits) return where + " is not of type " + types.dump();
    }
    if (value.is_object()) return object(value, schema, where);
    if (!value.is_array() || !schema.contains("items")) return {};
    for (const Json& one : value) {
      if (std::string wrong = violation(one, schema["items"], where + "[]"); !wrong.empty()) return wrong;
    }
    return {};
  }

  std::string object(const Json& value, const Json& schema, const std::string& where) const {
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) return where + " lacks " + name.dump();
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, one] : value.items()) {
      if (!properties.contains(name)) {
        if (schema.value("additionalProperties", true)) continue;
        return where + " has " + name;
      }
      if (std::string wrong = violation(one, properties[name], where + "." + name); !wrong.empty())
        return wrong;
    }
    return {};
  }

  std::string one_of(const Json& value, const Json& alternatives, const std::string& where) const {
    int fitting = 0;
    std::string reasons;
    for (const Json& alternative : alternatives) {
      const std::string wrong = violation(value, alternative, where);
      fitting += wrong.empty() ? 1 : 0;
      reasons += "\n  " + wrong;
    }
    return fitting == 1 ? "" : where + " fits " + std::to_string(fitting) + " alternatives:" + reasons;
  }

  Json root_;
};

}  // namespace acc::test
