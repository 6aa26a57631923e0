// SPDX-License-Identifier: Apache-2.0
#include "acc/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "acc/base/error.hpp"

namespace acc {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";

std::string map_characters(std::string_view text, char first, char last, int shift) {
  std::string result(text);
  for (char& c : result) {
    if (c >= first && c <= last) c = static_cast<char>(c + shift);
  }
  return result;
}

// Optimal string alignment: Levenshtein, with a swap of neighbours as one step.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

// Whether the byte is not a continuation byte of UTF-8.
bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
}

}  // namespace

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator, begin)) {
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (text = trim(text); !text.empty(); text = trim(text)) {
    const std::size_t size = std::min(text.find_first_of(kBlanks), text.size());
    words.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return words;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

bool contains(const std::vector<std::string>& all, std::string_view one) {
  return std::ranges::find(all, one) != all.end();
}

std::string in_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_";
  const bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos;
  return is_plain ? std::string(word) : in_quotes(word);
}

std::string shorten(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xc0U) == 0x80U) --max_bytes;
  return std::string(text.substr(0, max_bytes)) + "...";
}

std::string to_lower(std::string_view text) {
  return map_characters(text, 'A', 'Z', 'a' - 'A');
}
std::string to_upper(std::string_view text) {
  return map_characters(text, 'a', 'z', 'A' - 'a');
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('-') && text.size() > 1 && text[1] == '+') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_python_integer(std::string_view text) {
  const auto is_digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool between = text[i] == '_' && i > 0 && is_digit(i - 1) && is_digit(i + 1);
    if (!between) plain += text[i];
  }
  return parse_integer(plain);
}

std::optional<double> parse_number(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<bool> parse_truth(std::string_view text) {
  const std::string word = to_lower(trim(text));
  for (const std::string_view yes : {"y", "yes", "t", "true", "on", "1"}) {
    if (word == yes) return true;
  }
  for (const std::string_view no : {"n", "no", "f", "false", "off", "0"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

std::optional<std::string> nearest(std::string_view text, const std::vector<std::string>& candidates) {
  // A longer text is not a mistyped word.
  constexpr std::size_t kLongest = 100;
  if (text.size() > kLongest) return std::nullopt;
  const std::string word = to_lower(text);
  const std::size_t limit = std::max<std::size_t>(1, text.size() * 2 / 5);
  std::optional<std::string> best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, to_lower(candidate));
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& candidates) {
  const auto candidate = nearest(text, candidates);
  return candidate ? "did you mean '" + *candidate + "'?" : "";
}

std::string pluralize(std::uint64_t count, std::string_view noun) {
  const std::string_view ending = count == 1 ? "" : noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", count, noun, ending);
}

std::chrono::milliseconds to_milliseconds(double seconds) {
  const double exact = seconds * 1000;
  const auto nearest = static_cast<std::int64_t>(exact + 0.5);  // NOLINT: acc goes without libm's round()
  return std::chrono::milliseconds(nearest == 0 && exact > 0 ? 1 : nearest);
}

std::string seconds_text(std::chrono::milliseconds time) {
  return fmt::format("{} s", static_cast<double>(time.count()) / 1000);
}

std::string rounded_seconds_text(std::chrono::duration<double> time) {
  constexpr double kThreeDigits = 999.5;
  return time.count() < kThreeDigits ? fmt::format("{:.3g} s", time.count())
                                     : fmt::format("{:.0f} s", time.count());
}

std::string number_ranges(const std::vector<int>& numbers) {
  constexpr std::size_t kMaxParts = 16;
  std::vector<std::string> parts;
  std::size_t first = 0;
  while (first < numbers.size() && parts.size() < kMaxParts) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (last - first < 2) last = first;
    parts.push_back(last == first ? fmt::to_string(numbers[first])
                                  : fmt::format("{}-{}", numbers[first], numbers[last]));
    first = last + 1;
  }
  const std::size_t left = numbers.size() - first;
  return join(parts, ", ") + (left == 0 ? "" : fmt::format(" and {} more", left));
}

std::string name_ranks(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + number_ranges(ranks);
}

std::uint64_t parse_byte_size(std::string_view text, std::string_view where) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr std::array kUnits = {Unit{"KB", 1e3},      Unit{"MB", 1e6},        Unit{"GB", 1e9},
                                 Unit{"TB", 1e12},     Unit{"KIB", 1 << 10},   Unit{"MIB", 1 << 20},
                                 Unit{"GIB", 1 << 30}, Unit{"TIB", 1ULL << 40}};
  const std::string upper = to_upper(trim(text));
  for (const Unit& unit : kUnits) {
    if (!upper.ends_with(unit.name)) continue;
    const auto number = parse_number(upper.substr(0, upper.size() - unit.name.size()));
    // Not llround(): acc goes without libm.  NOLINTNEXTLINE(bugprone-incorrect-roundings)
    if (number && *number > 0 && *number < 1e6) return static_cast<std::uint64_t>(*number * unit.bytes + 0.5);
  }
  throw Error({.what = "'" + std::string(text) + "' is not a size",
               .where = std::string(where),
               .hint = "as in 5GB or 200MB"});
}

std::string to_characters(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xc0U | byte >> 6U);
      text += static_cast<char>(0x80U | (byte & 0x3fU));
    }
  }
  return text;
}

std::string to_bytes(std::string_view characters) {
  std::string bytes;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const auto byte = static_cast<unsigned char>(characters[i]);
    if (byte < 0x80 || i + 1 == characters.size()) {
      bytes += characters[i];
    } else {
      bytes +=
          static_cast<char>((byte & 0x03U) << 6U | (static_cast<unsigned char>(characters[++i]) & 0x3fU));
    }
  }
  return bytes;
}

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
  }
  const unsigned char second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string cut_characters(std::string_view text, std::size_t max_characters) {
  if (count_characters(text) <= max_characters) return std::string(text);
  if (max_characters == 0) return "";
  std::size_t end = 0;
  for (std::size_t kept = 0; end < text.size(); ++end) {
    if (begins_character(text[end]) && ++kept == max_characters) break;
  }
  return std::string(text.substr(0, end)) + "\u2026";
}

std::string wrap(std::string_view text, std::size_t indent, std::size_t width) {
  std::string result;
  std::size_t column = indent;
  for (const std::string& word : split(text, ' ')) {
    const std::size_t length = count_characters(word);
    if (column > indent && column + 1 + length > width) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += length;
  }
  return result;
}

std::string help_entry(std::string_view name, std::string_view description, std::size_t width) {
  constexpr std::size_t kNarrow = 70;
  const std::size_t indent = width < kNarrow ? 6 : 30;
  std::string text = "  " + std::string(name);
  if (text.size() + 2 > indent) {
    text += "\n" + std::string(indent, ' ');
  } else {
    text.resize(indent, ' ');
  }
  return text + wrap(description, indent, width) + "\n";
}

}  // namespace acc
