// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/config/read.hpp"

namespace acc::launcher {

/// Takes `KEY=VALUE` texts into the values. `SECTION.KEY=VALUE` sets a key inside of a section; an empty
/// value takes the key out. Throws Error{usage} with all texts that do not fit; nothing is changed then.
void assign(ConfigValues& values, const std::vector<std::string>& assignments);

/// The value under `KEY` or `SECTION.KEY`, with defaults; null when it has none.
/// Throws Error{usage} when there is no such key.
Value find_value(const ConfigValues& values, std::string_view key);

/// A value as a person types it: texts bare, everything else as JSON.
std::string display(const Value& value);

}  // namespace acc::launcher
