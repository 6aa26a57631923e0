// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

#include "acc/base/text.hpp"
#include "acc/config/value.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kDigits = "0123456789";

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

bool consists_of(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string without_underscores(std::string_view text) {
  std::string result(text);
  std::erase(result, '_');
  return result;
}

// `digits` are valid in this base. Returns nullopt if the number does not fit.
std::optional<Value> to_integer(std::string_view digits, int base, bool negative) {
  const std::string text = (negative ? "-" : "") + without_underscores(digits);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error == std::errc() && end == text.data() + text.size()) return Value(number);
  if (base == 10) return Value(std::strtod(text.c_str(), nullptr));
  return std::nullopt;
}

// `1:30:00`: all parts after the first are below 60; the last may have a fraction.
std::optional<double> read_sexagesimal(std::string_view text, bool fraction) {
  const std::vector<std::string> parts = split(text, ':');
  double total = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string part = i == 0 ? without_underscores(parts[i]) : parts[i];
    const bool last = i + 1 == parts.size();
    if (last && fraction) {
      const std::size_t dot = part.find('.');
      if (dot == std::string::npos || !consists_of(part.substr(dot + 1), kDigits)) return std::nullopt;
      if (dot == 0 || dot > 2 || !consists_of(part.substr(0, dot), kDigits)) return std::nullopt;
      part += "0";
    } else if (part.empty() || !consists_of(part, kDigits) || (i > 0 && part.size() > 2)) {
      return std::nullopt;
    }
    const double number = std::strtod(part.c_str(), nullptr);
    if (i > 0 && number >= 60) return std::nullopt;
    total = total * 60 + number;
  }
  return total;
}

std::optional<Value> read_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text[0])) return std::nullopt;
  if (text.starts_with("0b") && text.size() > 2 && consists_of(text.substr(2), "01_"))
    return to_integer(text.substr(2), 2, negative);
  if (text.starts_with("0x") && text.size() > 2 && consists_of(text.substr(2), "0123456789abcdefABCDEF_"))
    return to_integer(text.substr(2), 16, negative);
  if (text.size() > 1 && text[0] == '0') {
    if (!consists_of(text, "01234567_")) return std::nullopt;
    return to_integer(text, 8, negative);
  }
  if (consists_of(text, "0123456789_")) return to_integer(text, 10, negative);
  if (text[0] != '0' && text.find(':') != std::string_view::npos) {
    if (const auto number = read_sexagesimal(text, false))
      return Value(static_cast<std::int64_t>(negative ? -*number : *number));
  }
  return std::nullopt;
}

// `1.5`, `1.`, `.5`, `1.5e+3` (the exponent needs its sign), without the sign in front.
bool is_decimal_fraction(std::string_view text, bool may_lack_whole_part) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view whole = text.substr(0, dot);
  std::string_view rest = text.substr(dot + 1);
  if (const std::size_t e = rest.find_first_of("eE"); e != std::string_view::npos) {
    const std::string_view exponent = rest.substr(e + 1);
    if (exponent.size() < 2 || (exponent[0] != '+' && exponent[0] != '-')) return false;
    if (!consists_of(exponent.substr(1), kDigits)) return false;
    rest = rest.substr(0, e);
  }
  if (!consists_of(rest, "0123456789_")) return false;
  if (whole.empty()) return may_lack_whole_part && !rest.empty() && is_digit(rest[0]);
  return is_digit(whole[0]) && consists_of(whole, "0123456789_");
}

std::optional<Value> read_float(std::string_view text) {
  const bool is_signed = text.starts_with('-') || text.starts_with('+');
  const double sign = text.starts_with('-') ? -1 : 1;
  const std::string_view number = is_signed ? text.substr(1) : text;
  if (one_of(number, {".inf", ".Inf", ".INF"})) return Value(sign * std::numeric_limits<double>::infinity());
  if (one_of(text, {".nan", ".NaN", ".NAN"})) return Value(std::numeric_limits<double>::quiet_NaN());
  if (is_decimal_fraction(number, !is_signed)) {
    if (const auto value = parse_number(without_underscores(number))) return Value(sign * *value);
    return std::nullopt;
  }
  if (number.empty() || !is_digit(number[0]) || number.find(':') == std::string_view::npos)
    return std::nullopt;
  const auto value = read_sexagesimal(number, true);
  return value ? std::optional<Value>(sign * *value) : std::nullopt;
}

// `2026-01-31`, with or without a time of day: PyYAML reads these as dates.
bool is_timestamp(std::string_view text) {
  if (text.size() < 8 || !consists_of(text.substr(0, 4), kDigits) || text[4] != '-') return false;
  if (text.size() == 10 && text[7] == '-')
    return consists_of(text.substr(5, 2), kDigits) && consists_of(text.substr(8), kDigits);
  return text.find(':') != std::string_view::npos && consists_of(text, "0123456789-:.+TtZ \t");
}

}  // namespace

Value read_plain_scalar(std::string_view text) {
  if (text.empty() || one_of(text, {"~", "null", "Null", "NULL"})) return nullptr;
  if (one_of(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (one_of(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) return false;
  if (const auto number = read_integer(text)) return *number;
  if (const auto number = read_float(text)) return *number;
  return std::string(text);
}

bool needs_quotes(std::string_view text) {
  return !read_plain_scalar(text).is_string() || is_timestamp(text) || text == "=" || text == "<<";
}

}  // namespace acc::launcher
