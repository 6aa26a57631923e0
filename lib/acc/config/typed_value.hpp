// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "acc/config/document.hpp"
#include "acc/config/schema.hpp"

namespace acc::launcher {

/// Why a value does not fit its setting, and the way out.
struct Mismatch {
  std::string what = {};
  std::string hint = {};

  bool operator==(const Mismatch&) const = default;
};

/// The node as a value of the setting, read as its writer meant it: where text belongs, an unquoted `no` or
/// `0` is text; where a truth value belongs, every truth word is one; `"8"` is a number where one belongs.
/// A null stays null.
std::variant<Value, Mismatch> typed_value(const SettingSpec& spec, const DocumentNode& node);

/// Whether the setting is a number; the words that it allows are then taken besides numbers.
bool is_number(const SettingSpec& spec);

/// The allowed word that `text` stands for (in any case, or by its number, where the setting takes them so),
/// absent when there is none; a setting that allows any text takes it as it is.
std::optional<std::string> allowed_word(const SettingSpec& spec, std::string_view text);

/// The same as typed_value for text that was typed, as in `KEY=VALUE` or an answer.
std::variant<Value, Mismatch> typed_value(const SettingSpec& spec, std::string_view text);

}  // namespace acc::launcher
