// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "acc/config/document.hpp"
#include "acc/config/schema.hpp"

namespace acc::launcher {

/// Why a value is invalid for its setting, and what to do.
struct Mismatch {
  std::string what = {};
  std::string hint = {};

  bool operator==(const Mismatch&) const = default;
};

/// Converts the node to the type of the setting: for a text setting an unquoted `no` or `0` is text; for a
/// boolean every truth word is accepted; for a number `"8"` is accepted too. Null stays null.
std::variant<Value, Mismatch> convert(const SettingSpec& spec, const DocumentNode& node);

/// Why the number is out of the setting's range, as in `must be at least 1, not 0`; nullopt: it is not.
std::optional<std::string> range_problem(const SettingSpec& spec, std::int64_t number);

/// Whether the setting is a number. Its allowed words are then accepted besides numbers.
bool is_number(const SettingSpec& spec);

/// Returns the allowed word that `text` names (ignoring case, or by number, where the setting permits it),
/// or nullopt. A setting without allowed words returns `text` itself.
std::optional<std::string> allowed_word(const SettingSpec& spec, std::string_view text);

/// The same for text from a command line or an answer, as in `KEY=VALUE`.
std::variant<Value, Mismatch> convert(const SettingSpec& spec, std::string_view text);

}  // namespace acc::launcher
