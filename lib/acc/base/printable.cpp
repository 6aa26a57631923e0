// SPDX-License-Identifier: Apache-2.0
#include "acc/base/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace acc {
namespace {

/// The smallest character that is written in so many bytes, and the marks of its first byte.
struct Sequence {
  unsigned char mask = 0;
  unsigned char lead = 0;
  char32_t min = 0;
};

constexpr Sequence kSequences[] = {
    {0x80, 0x00, 0x00}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

bool is_shown(char32_t c, char32_t min) {
  const bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool is_surrogate = c >= 0xd800 && c < 0xe000;
  return c >= min && c <= 0x10ffff && !is_surrogate && (!is_control || c == '\n' || c == '\t');
}

// The number of bytes of the character at the beginning of `text` that is shown as it is; 0: there is none.
std::size_t shown_bytes(std::string_view text) {
  std::size_t bytes = 0;
  for (const auto& [mask, lead, min] : kSequences) {
    ++bytes;
    const auto first = static_cast<unsigned char>(text.front());
    if ((first & mask) != lead) continue;
    if (text.size() < bytes) return 0;
    char32_t character = first & static_cast<unsigned char>(~mask);
    for (const char c : text.substr(1, bytes - 1)) {
      const auto byte = static_cast<unsigned char>(c);
      if ((byte & 0xc0U) != 0x80U) return 0;
      character = character << 6U | (byte & 0x3fU);
    }
    return is_shown(character, min) ? bytes : 0;
  }
  return 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t bytes = shown_bytes(text);
    if (bytes > 0) {
      result += text.substr(0, bytes);
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

}  // namespace acc
