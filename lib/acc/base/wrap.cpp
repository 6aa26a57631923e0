// SPDX-License-Identifier: Apache-2.0
#include "acc/base/wrap.hpp"

#include <algorithm>

#include "acc/base/text.hpp"

namespace acc {
namespace {

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
}

}  // namespace

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string cut_characters(std::string_view text, std::size_t most) {
  if (count_characters(text) <= most) return std::string(text);
  if (most == 0) return "";
  std::size_t end = 0;
  for (std::size_t kept = 0; end < text.size(); ++end) {
    if (begins_character(text[end]) && ++kept == most) break;
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
