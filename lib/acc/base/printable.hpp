// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace acc {

/// Text of another program for a terminal: control characters but newlines and tabs, and bytes that are not
/// UTF-8, are written as `\x1b`, so that they move no cursor and change no color.
std::string printable(std::string_view text);

}  // namespace acc
