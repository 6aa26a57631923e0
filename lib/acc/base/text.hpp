// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc {

/// Removes whitespace at both ends.
std::string_view trim(std::string_view text);

/// The parts between separators, empty ones included; an empty text gives one empty part.
std::vector<std::string> split(std::string_view text, char separator);

/// The text, cut to `max_bytes` and marked with `...` when it is longer. Never splits a UTF-8 sequence.
std::string shorten(std::string_view text, std::size_t max_bytes = 80);

/// The words between whitespace.
std::vector<std::string> split_words(std::string_view text);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

bool contains(const std::vector<std::string>& all, std::string_view one);

/// The text in single quotes: one word of any POSIX shell, whatever the text has inside.
std::string in_quotes(std::string_view text);

/// A word of a command line of a POSIX shell, with quotes where it needs them.
std::string shell_word(std::string_view word);

/// Only ASCII letters are changed.
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);

/// A decimal integer with an optional sign and whitespace around it; nullopt for anything else and when it
/// does not fit.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// The same by the rules of Python's `int`, which torchrun and accelerate use: single `_` between digits are
/// ignored.
std::optional<std::int64_t> parse_python_integer(std::string_view text);

/// A finite decimal number; nullopt for anything else.
std::optional<double> parse_number(std::string_view text);

/// A boolean by accelerate's str_to_bool: y yes t true on 1 / n no f false off 0, in any case.
std::optional<bool> parse_truth(std::string_view text);

/// The candidate nearest to `text` by edit distance (swapped neighbours count once), if it is near enough for
/// "did you mean".
std::optional<std::string> nearest(std::string_view text, const std::vector<std::string>& candidates);

/// `did you mean 'x'?`, or empty when no candidate is near.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& candidates);

/// `1 node`, `3 nodes`, `2 processes`.
std::string pluralize(std::uint64_t count, std::string_view noun);

/// Seconds as a time, to the nearest millisecond, but what is above 0 does not become 0, which often means
/// never or at once.
/// Below 1e15 seconds in size.
std::chrono::milliseconds to_milliseconds(double seconds);

/// `1.5 s`.
std::string seconds_text(std::chrono::milliseconds time);
/// `0.213 s`, `1800 s`: what was measured, to three significant digits or to a second.
std::string rounded_seconds_text(std::chrono::duration<double> time);

/// `0-3, 5, 7, 8`: ascending numbers, of which three neighbours or more are a range. Of many parts only the
/// first sixteen, and how many numbers more there are: `... and 40 more`.
std::string number_ranges(const std::vector<int>& numbers);

/// `rank 3`, `ranks 0-3, 5`; ascending, and cut like number_ranges().
std::string name_ranks(const std::vector<int>& ranks);

/// Parses `5GB`, `200MB`: decimal units, as in accelerate's save_model; `8GiB`: binary ones. Throws
/// Error{usage} with `where`.
std::uint64_t parse_byte_size(std::string_view text, std::string_view where);

/// Bytes as a UTF-8 text, which JSON demands: those beyond ASCII become the characters U+0080 to U+00FF.
std::string to_characters(std::string_view bytes);

/// The bytes of such a text.
std::string to_bytes(std::string_view characters);

/// The length of the UTF-8 sequence at the beginning of a text that is not empty; 0 if it is invalid, as are
/// overlong forms, surrogates and code points above U+10FFFF.
std::size_t utf8_length(std::string_view text);

/// Whether the whole text is UTF-8.
bool is_utf8(std::string_view text);

/// The number of characters (code points) of a UTF-8 text.
std::size_t count_characters(std::string_view text);

/// The first `max_characters` of a UTF-8 text; the last of them is an ellipsis when the text is longer.
std::string cut_characters(std::string_view text, std::size_t max_characters);

/// Wraps the text at spaces into lines of at most `width` columns. Every line begins at column `indent`: the
/// first is expected to be printed there, the others get that many spaces. A longer word has its own line.
std::string wrap(std::string_view text, std::size_t indent, std::size_t width);

/// An entry of a help text: the name, and its description beside it, or below when `width` is narrow or the
/// name is long.
std::string help_entry(std::string_view name, std::string_view description, std::size_t width);

}  // namespace acc
