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

// Characters without a shape of their own that change the order in which others are shown, or hide in a word.
bool is_invisible(char32_t c) {
  const bool is_mark = c == 0x61c || (c >= 0x200b && c <= 0x200f);
  const bool is_embedding = (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f);
  return (is_mark && c != 0x200c && c != 0x200d) || is_embedding || c == 0xfeff;
}

bool is_shown(char32_t c, char32_t min) {
  const bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool is_surrogate = c >= 0xd800 && c < 0xe000;
  const bool is_seen = (!is_control || c == '\n' || c == '\t') && !is_invisible(c);
  return c >= min && c <= 0x10ffff && !is_surrogate && is_seen;
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

namespace {

// The length of the escape sequence at the beginning of `text`, which begins with ESC: CSI up to its final
// byte, OSC up to BEL or ST, or two bytes.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {
    const std::size_t end = text.find_first_not_of("0123456789:;<=>?!\"#$%&'()*+,-./ ", 2);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  if (text[1] == ']') {
    const std::size_t end = text.find_first_of("\a\x1b", 2);
    if (end == std::string_view::npos) return text.size();
    return text[end] == '\a' ? end + 1 : std::min(end + 2, text.size());
  }
  return 2;
}

}  // namespace

std::string shown_line(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  line.remove_prefix(line.rfind('\r') + 1);  // npos + 1 is 0
  std::string text;
  while (!line.empty()) {
    const std::size_t escape = line.find('\x1b');
    text += line.substr(0, escape);
    line.remove_prefix(std::min(escape, line.size()));
    if (!line.empty()) line.remove_prefix(escape_length(line));
  }
  return printable(text);
}

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

std::string printable_line(std::string_view text) {
  std::string line;
  for (const char c : printable(text)) {
    if (c == '\n' || c == '\t')
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      line += c;
  }
  return line;
}

}  // namespace acc
