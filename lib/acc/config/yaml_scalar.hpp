// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "acc/config/value.hpp"

namespace acc::launcher {

/// What an unquoted scalar means in YAML 1.1, as PyYAML's safe loader reads it: `no` is false, `0o7` is text,
/// `1:30` is 90, `1e5` is text. Dates stay text.
Value read_plain_scalar(std::string_view text);

/// Whether PyYAML would read `text`, unquoted, as anything but this text: then it must be quoted.
bool needs_quotes(std::string_view text);

}  // namespace acc::launcher
