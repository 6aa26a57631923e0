// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/masked_words.hpp"

#include <algorithm>
#include <array>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kMask = "***";

// `name=value` with a secret value; other text stays.
std::string masked_pair(const std::string& text) {
  const std::size_t equal = text.find('=');
  if (equal == std::string::npos || !names_secret(std::string_view(text).substr(0, equal))) return text;
  return text.substr(0, equal + 1) + std::string(kMask);
}

std::string masked_pairs(const std::string& text) {
  std::vector<std::string> parts = split(text, ',');
  std::ranges::transform(parts, parts.begin(), masked_pair);
  return join(parts, ",");
}

// A flag whose value is the next word.
bool is_secret_flag(const std::string& word) {
  return word.starts_with('-') && word.find('=') == std::string::npos && names_secret(word);
}

}  // namespace

bool names_secret(std::string_view name) {
  constexpr std::array<std::string_view, 4> kWords = {"token", "key", "secret", "password"};
  const std::string lower = to_lower(name);
  return std::ranges::any_of(kWords,
                             [&](std::string_view word) { return lower.find(word) != std::string::npos; });
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
      word = masked_pair(word);
    }
  }
  return words;
}

Value masked_value(std::string_view name, const Value& value) {
  if (names_secret(name)) return kMask;
  if (value.is_string()) return masked_pairs(value.get<std::string>());
  if (!value.is_structured()) return value;
  Value masked = value;
  for (const auto& [key, one] : masked.items()) one = masked_value(value.is_object() ? key : "", Value(one));
  return masked;
}

}  // namespace acc::launcher
