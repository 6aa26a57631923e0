// SPDX-License-Identifier: Apache-2.0
#include "acc/config/write.hpp"

#include "acc/base/files.hpp"
#include "acc/config/value.hpp"

namespace acc::launcher {

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
  if (file.extension() != ".json") return write_yaml(mapping);
  constexpr bool kAscii = true;
  return mapping.dump(2, ' ', kAscii) + "\n";
}

void write_config(const ConfigValues& values, const std::filesystem::path& file) {
  replace_file(file, format_config(values, file));
}

}  // namespace acc::launcher
