// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/config/read.hpp"

namespace acc::launcher {

/// Applies `KEY=VALUE` assignments to `values`. `SECTION.KEY=VALUE` sets a key of a section; an empty value
/// removes the key. Throws Error{usage} with every invalid assignment, and then changes nothing.
void assign(ConfigValues& values, const std::vector<std::string>& assignments);

/// Returns the value of `KEY` or `SECTION.KEY`, or its default; null if it has neither. Throws Error{usage}
/// for an unknown key.
Value find_value(const ConfigValues& values, std::string_view key);

/// Formats a value as a person writes it: text without quotes, everything else as JSON.
std::string display(const Value& value);

}  // namespace acc::launcher
