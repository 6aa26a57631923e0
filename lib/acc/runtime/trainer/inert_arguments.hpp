// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace acc::detail {

/// An argument of transformers for which TrainingArguments has no field: at these values a training here is
/// what it is in transformers without the argument.
struct InertArgument {
  /// `group.name` for a key of an argument that is an object.
  std::string_view name;
  /// JSON, an array; empty: all values.
  std::string_view values;
  /// What to use in place of another value.
  std::string_view hint;
};

/// All of them, in the order of transformers 5.23's TrainingArguments.
std::span<const InertArgument> inert_arguments();

/// The one with this name; null if there is none.
const InertArgument* find_inert_argument(std::string_view name);

/// Throws Error{config} at `where`, with the hint, unless the argument is inert at this value.
void require_inert(const InertArgument& argument, const nlohmann::json& value, const std::string& where);

/// Like require_inert, for the text of a flag.
void require_inert_text(const InertArgument& argument, const std::string& text, const std::string& where);

}  // namespace acc::detail
