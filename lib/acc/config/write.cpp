// SPDX-License-Identifier: Apache-2.0
#include "acc/config/write.hpp"

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/config/value.hpp"

namespace acc::launcher {

void require_utf8(const Value& value, const std::string& name) {
  if (value.is_string() && !is_utf8(value.get<std::string>())) {
    throw Error({.kind = ErrorKind::config,
                 .what = "is not UTF-8, and cannot be written in a config file",
                 .where = name});
  }
  if (!value.is_structured()) return;
  for (const auto& [key, item] : value.items()) require_utf8(item, value.is_object() ? key : name);
}

Value written_values(const ConfigValues& values) {
  Value mapping = Value::object();
  for (const auto& [name, value] : values) {
    const bool empty_section = value.is_object() && value.empty();
    if (!value.is_null() && !empty_section) mapping[name] = value;
  }
  return mapping;
}

std::string format_config(const ConfigValues& values, const std::filesystem::path& file) {
  const Value mapping = written_values(values);
  require_utf8(mapping, "config");
  if (file.extension() != ".json") return write_yaml(mapping);
  constexpr bool kAscii = true;
  return mapping.dump(2, ' ', kAscii) + "\n";
}

void write_config(const ConfigValues& values, const std::filesystem::path& file) {
  replace_file(file, format_config(values, file));
}

}  // namespace acc::launcher
