// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/masked_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kMask = "***";
constexpr std::string_view kDelimiters = ",;& \t\n{}";
constexpr std::string_view kQuotes = "\"' ";

bool is_of_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '-' ||
         letter == '.';
}

bool is_separator(char letter) {
  return letter == '=' || letter == ':' || letter == ' ';
}

// The name right before `end`, perhaps in quotes.
std::string_view name_before(std::string_view text, std::size_t end) {
  while (end > 0 && kQuotes.find(text[end - 1]) != std::string_view::npos) --end;
  std::size_t begin = end;
  while (begin > 0 && is_of_name(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

// Whether a name with `=` or `:` follows.
bool begins_pair(std::string_view text) {
  std::size_t end = std::min(text.find_first_not_of(kQuotes), text.size());
  const std::size_t begin = end;
  while (end < text.size() && is_of_name(text[end])) ++end;
  const std::size_t separator = std::min(text.find_first_not_of(kQuotes, end), text.size());
  return end > begin && separator < text.size() && (text[separator] == '=' || text[separator] == ':');
}

// A secret may have delimiters in it: it ends where another pair begins.
std::size_t end_of_value(std::string_view text, std::size_t begin) {
  for (std::size_t i = text.find_first_of(kDelimiters, begin); i != std::string_view::npos;
       i = text.find_first_of(kDelimiters, i + 1)) {
    if (begins_pair(text.substr(i + 1))) return i;
  }
  return text.size();
}

// `https://user:password@host` becomes `https://***@host`.
std::string masked_addresses(std::string text) {
  constexpr std::string_view kBegin = "://";
  for (std::size_t i = text.find(kBegin); i != std::string::npos; i = text.find(kBegin, i)) {
    i += kBegin.size();
    const std::size_t end = std::min(text.find_first_of("/?# ", i), text.size());
    const std::size_t at = text.rfind('@', end);
    if (at == std::string::npos || at < i) continue;
    text.replace(i, at - i, kMask);
  }
  return text;
}

std::string masked_text(const std::string& text) {
  const std::string source = masked_addresses(text);
  std::string masked;
  std::size_t copied = 0;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (!is_separator(source[i]) || !names_secret(name_before(source, i))) continue;
    const std::size_t begin = std::min(source.find_first_not_of(kQuotes, i + 1), source.size());
    if (begin == source.size()) break;
    masked += source.substr(copied, begin - copied) + std::string(kMask);
    copied = end_of_value(source, begin);
    const bool is_quoted = copied > begin + 1 && (source[copied - 1] == '"' || source[copied - 1] == '\'');
    if (is_quoted) --copied;
    i = copied;
  }
  return copied < source.size() ? masked + source.substr(copied) : masked;
}

// A flag whose value is the next word.
bool is_secret_flag(const std::string& word) {
  return word.starts_with('-') && std::ranges::all_of(word, is_of_name) && names_secret(word);
}

}  // namespace

bool names_secret(std::string_view name) {
  constexpr std::array<std::string_view, 13> kWords = {
      "token",  "key",        "keys",       "secret",      "secrets", "password", "passwords",
      "passwd", "passphrase", "credential", "credentials", "pwd",     "auth"};
  std::string lower = to_lower(name);
  std::ranges::replace_if(lower, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '-');
  return std::ranges::any_of(split(lower, '-'), [&](const std::string& part) {
    return std::ranges::any_of(kWords, [&](std::string_view word) { return part.ends_with(word); });
  });
}

std::vector<std::string> masked_words(std::vector<std::string> words) {
  bool is_value = false;
  for (std::string& word : words) {
    const bool is_flag = word.starts_with("--");
    if (is_value && !is_flag) {
      word = kMask;
      is_value = false;
    } else {
      is_value = is_secret_flag(word);
      word = masked_text(word);
    }
  }
  return words;
}

Value masked_value(std::string_view name, const Value& value) {
  if (names_secret(name)) return kMask;
  if (value.is_string()) return masked_text(value.get<std::string>());
  if (!value.is_structured()) return value;
  Value masked = value;
  for (const auto& [key, one] : masked.items()) one = masked_value(value.is_object() ? key : "", Value(one));
  return masked;
}

}  // namespace acc::launcher
