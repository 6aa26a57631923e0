// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc {

/// Without blanks, tabs and line ends at both ends.
std::string_view trim(std::string_view text);

/// The parts between `separator`, empty ones included; an empty text is one empty part.
std::vector<std::string> split(std::string_view text, char separator);

/// The text, or its beginning and `...` where it is longer than `most` bytes; never part of a UTF-8 sequence.
std::string shorten(std::string_view text, std::size_t most = 80);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// ASCII only.
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);

/// A whole decimal number with an optional sign and blanks around it; nothing else. Absent when it is not one
/// or does not fit.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// The same by the rules of Python's `int`, which both peers use: single `_` between digits are passed over.
std::optional<std::int64_t> parse_python_integer(std::string_view text);

/// A finite decimal number, absent when it is not one.
std::optional<double> parse_number(std::string_view text);

/// accelerate's truth words: y yes t true on 1 / n no f false off 0, in any case.
std::optional<bool> parse_truth(std::string_view text);

/// The candidate nearest to `text` by edit distance (swapped neighbours count once), if it is near enough to
/// be worth asking "did you mean".
std::optional<std::string> nearest(std::string_view text, const std::vector<std::string>& candidates);

/// `did you mean 'x'?`, or empty when no candidate is near.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& candidates);

}  // namespace acc
