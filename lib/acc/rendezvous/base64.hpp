// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace acc::launcher {

/// Standard base64 with padding and without line breaks, as Python's b64encode.
std::string to_base64(std::string_view bytes);

/// Absent when `text` is anything else.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace acc::launcher
