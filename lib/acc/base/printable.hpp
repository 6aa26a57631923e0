// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace acc {

/// Text of another program for a terminal or a page: control characters but newlines and tabs, characters
/// that reorder a line or cannot be seen (U+202E), and bytes that are not UTF-8 are written as `\x1b`, so
/// that they move no cursor, change no color and hide nothing.
std::string printable(std::string_view text);

/// The same for a line of text: newlines and tabs are written as `\x0a` and `\x09`, too.
std::string printable_line(std::string_view text);

/// One line of another program's output as a terminal would show it, without colors: escape sequences are
/// left out, what a carriage return overwrites too, and the rest is printable().
std::string shown_line(std::string_view line);

}  // namespace acc
