// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace acc::launcher {

/// The value of a setting: null, string, number, boolean, list or mapping. Keys of a mapping are sorted, as
/// accelerate writes them.
using Value = nlohmann::json;

/// Resolves an unquoted YAML 1.1 scalar as PyYAML's safe loader does: `no` is false, `0o7` is text, `1:30`
/// is 90, `1e5` is text. Dates stay text.
Value read_plain_scalar(std::string_view text);

/// Whether PyYAML would read the unquoted `text` as something other than a string.
bool needs_quotes(std::string_view text);

/// Writes the mapping as PyYAML 6.0's safe_dump does, byte for byte: sorted keys, block style, lists at the
/// indentation of their key, quotes only where YAML 1.1 needs them, lines folded after column 80.
/// yaml-cpp's emitter follows YAML 1.2 and leaves `no` or `1:30` unquoted.
std::string write_yaml(const Value& mapping);

}  // namespace acc::launcher
