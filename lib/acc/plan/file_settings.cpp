// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/file_settings.hpp"

#include <fmt/format.h>

#include "acc/config/schema.hpp"

namespace acc::launcher {
namespace {

std::string origin_of(const FileConfig& file, const std::string& key) {
  const auto line = file.positions.find(key);
  return line == file.positions.end() ? file.path.string()
                                      : fmt::format("{}:{}", file.path.string(), line->second);
}

}  // namespace

std::map<std::string, Setting, std::less<>> file_settings(const FileConfig& file) {
  std::map<std::string, Setting, std::less<>> settings;
  for (const auto& [key, value] : file.values) {
    settings[key] = {value, origin_of(file, key)};
    if (!value.is_object()) continue;
    for (const auto& [inner, inner_value] : value.items()) {
      const SettingSpec* spec = find_section_key(key, inner);
      if (spec != nullptr)
        settings[std::string(spec->name)] = {inner_value, origin_of(file, key + "." + inner)};
    }
  }
  return settings;
}

std::vector<std::string> file_order(const FileConfig& file) {
  std::vector<std::string> names;
  for (const std::string& key : file.order) {
    const std::size_t dot = key.find('.');
    const SettingSpec* spec =
        dot == std::string::npos ? nullptr : find_section_key(key.substr(0, dot), key.substr(dot + 1));
    names.emplace_back(spec == nullptr ? key : std::string(spec->name));
  }
  return names;
}

}  // namespace acc::launcher
