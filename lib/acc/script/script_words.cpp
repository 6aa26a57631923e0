// SPDX-License-Identifier: Apache-2.0
#include "acc/script/script_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/config/value.hpp"

namespace acc::launcher {
namespace {

// Of ASCII, whatever the locale.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter_or_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// Bash's $'...', which keeps control characters out of the line.
std::string ansi_quoted(std::string_view word) {
  std::string text = "$'";
  for (const char c : word) {
    if (is_control(c)) {
      // Three digits: a digit may follow.
      text += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    } else {
      if (c == '\'' || c == '\\') text += '\\';
      text += c;
    }
  }
  return text + "'";
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

std::string bash_word(std::string_view word) {
  return std::ranges::any_of(word, is_control) ? ansi_quoted(word) : shell_word(word);
}

std::string bash_command(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  std::ranges::transform(words, std::back_inserter(quoted), bash_word);
  return join(quoted, " ");
}

std::string yaml_text(std::string_view text) {
  std::string quoted;
  try {
    quoted = Value(text).dump();
  } catch (const Value::exception&) {
    throw Error({.what = "is not UTF-8, and cannot be written in a manifest", .where = shorten(text)});
  }
  // What YAML does not allow unescaped, or takes as the end of a line, and JSON does not escape.
  replace_all(quoted, "\x7f", "\\x7f");
  for (unsigned c = 0x80; c < 0xa0; ++c)
    replace_all(quoted, std::string("\xc2") + static_cast<char>(c), fmt::format("\\x{:02x}", c));
  replace_all(quoted, "\xe2\x80\xa8", "\\u2028");
  replace_all(quoted, "\xe2\x80\xa9", "\\u2029");
  replace_all(quoted, "\xef\xbb\xbf", "\\ufeff");
  replace_all(quoted, "\xef\xbf\xbe", "\\ufffe");
  replace_all(quoted, "\xef\xbf\xbf", "\\uffff");
  return quoted;
}

std::string kubernetes_text(std::string_view text) {
  std::string escaped(text);
  replace_all(escaped, "$", "$$");
  return yaml_text(escaped);
}

std::string dns_label(std::string_view text) {
  constexpr std::size_t kMax = 40;
  std::string label;
  for (const char c : to_lower(text)) {
    if (is_letter_or_digit(c)) {
      label += c;
    } else if (!label.empty() && label.back() != '-') {
      label += '-';
    }
  }
  if (label.empty() || is_digit(label.front())) label.insert(0, "job-");
  label.resize(std::min(label.size(), kMax));
  while (label.back() == '-') label.pop_back();
  return label;
}

}  // namespace acc::launcher
