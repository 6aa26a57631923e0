// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "acc/config/value.hpp"

namespace acc::launcher {
namespace {

constexpr std::size_t kWidth = 80;

std::u32string decode(std::string_view text) {
  std::u32string result;
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    char32_t c = length == 1 ? first : first & (0xffU >> (length + 1));
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k)
      c = (c << 6U) | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    result += c;
    i += length;
  }
  return result;
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

enum class Style { plain, single_quoted, double_quoted };

// Whether the text contains YAML indicators, which would change its meaning without quotes.
bool has_indicators(std::string_view text) {
  constexpr std::string_view kFirst = "#,[]{}&*!|>'\"%@`";
  if (text.starts_with("---") || text.starts_with("...")) return true;
  if (kFirst.find(text[0]) != std::string_view::npos) return true;
  const auto followed_by_blank = [&](std::size_t i) { return i + 1 >= text.size() || is_blank(text[i + 1]); };
  if ((text[0] == '?' || text[0] == '-') && followed_by_blank(0)) return true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ':' && followed_by_blank(i)) return true;
    if (text[i] == '#' && is_blank(text[i - 1])) return true;
  }
  return false;
}

Style choose_style(std::string_view text, bool is_key) {
  if (text.empty()) return Style::single_quoted;
  bool special = false;
  for (const char c : text) special = special || (c != '\n' && (c < ' ' || c > '~'));
  const bool space_before_break = text.find(" \n") != std::string_view::npos;
  const bool space_after_break = text.find("\n ") != std::string_view::npos;
  if (special || space_before_break || space_after_break) return Style::double_quoted;
  const bool multiline = text.find('\n') != std::string_view::npos;
  if (multiline) return is_key ? Style::double_quoted : Style::single_quoted;
  const bool edges = text.front() == ' ' || text.back() == ' ';
  return edges || has_indicators(text) || needs_quotes(text) ? Style::single_quoted : Style::plain;
}

std::string escape(char32_t c) {
  constexpr std::array<char32_t, 15> kSpecial = {0,    '\a', '\b', '\t', '\n', '\v',   '\f',  '\r',
                                                 0x1b, '"',  '\\', 0x85, 0xa0, 0x2028, 0x2029};
  constexpr std::string_view kLetters = "0abtnvfre\"\\N_LP";
  const auto found = std::ranges::find(kSpecial, c);
  if (found != kSpecial.end()) return {'\\', kLetters[static_cast<std::size_t>(found - kSpecial.begin())]};
  const auto number = static_cast<std::uint32_t>(c);
  if (c <= 0xff) return fmt::format("\\x{:02X}", number);
  return c <= 0xffff ? fmt::format("\\u{:04X}", number) : fmt::format("\\U{:08X}", number);
}

class Writer {
 public:
  std::string take() { return std::move(text_); }

  // `stay`: the first entry continues the current line, after the dash of a list.
  void mapping(const Value& value, std::size_t indent, bool stay) {
    for (const auto& [key, item] : value.items()) {
      if (!stay) new_line(indent);
      stay = false;
      scalar_text(key, indent, true);
      put(":");
      if (item.is_object() && !item.empty()) {
        mapping(item, indent + 2, false);
      } else if (item.is_array() && !item.empty()) {
        list(item, indent, false);
      } else {
        put(" ");
        scalar(item, indent + 2);
      }
    }
  }

 private:
  void new_line(std::size_t indent) {
    text_ += '\n';
    text_.append(indent, ' ');
    column_ = indent;
  }

  void put(std::string_view text) {
    text_ += text;
    column_ += text.size();
  }

  void list(const Value& value, std::size_t indent, bool stay) {
    for (const Value& item : value) {
      if (!stay) new_line(indent);
      stay = false;
      put("- ");
      if (item.is_object() && !item.empty()) {
        mapping(item, indent + 2, true);
      } else if (item.is_array() && !item.empty()) {
        list(item, indent + 2, true);
      } else {
        scalar(item, indent + 2);
      }
    }
  }

  void scalar(const Value& value, std::size_t indent) {
    if (value.is_string()) {
      scalar_text(value.get_ref<const std::string&>(), indent, false);
    } else if (value.is_number_float()) {
      put(number_text(value.get<double>()));
    } else {
      put(value.dump());
    }
  }

  static std::string number_text(double number) {
    if (std::isnan(number)) return ".nan";
    if (std::isinf(number)) return number < 0 ? "-.inf" : ".inf";
    std::string text = fmt::format("{}", number);
    const std::size_t e = text.find('e');
    // YAML 1.1 requires a point before an exponent.
    if (text.find('.') == std::string::npos) text.insert(e == std::string::npos ? text.size() : e, ".0");
    return text;
  }

  void scalar_text(std::string_view text, std::size_t indent, bool is_key) {
    switch (choose_style(text, is_key)) {
      case Style::plain:
        return folded(text, indent, !is_key);
      case Style::single_quoted:
        return single_quoted(text, indent, !is_key);
      case Style::double_quoted:
        return double_quoted(decode(text), indent, !is_key);
    }
  }

  // Writes the words of a line and breaks it at single spaces beyond kWidth columns.
  void folded(std::string_view text, std::size_t indent, bool may_fold) {
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t end = std::min(text.find(' ', i), text.size());
      put(text.substr(i, end - i));
      const std::size_t next = std::min(text.find_first_not_of(' ', end), text.size());
      const bool inside = end > 0 && next < text.size();
      if (may_fold && inside && next == end + 1 && column_ > kWidth) {
        new_line(indent);
      } else {
        put(text.substr(end, next - end));
      }
      i = next;
    }
  }

  void single_quoted(std::string_view text, std::size_t indent, bool may_fold) {
    put("'");
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] == '\n') {
        const std::size_t end = std::min(text.find_first_not_of('\n', i), text.size());
        // A single line break would be read as a space, so one more is written.
        for (std::size_t k = i; k < end; ++k) text_ += '\n';
        new_line(indent);
        i = end;
        continue;
      }
      const std::size_t end = std::min(text.find('\n', i), text.size());
      std::string line;
      for (const char c : text.substr(i, end - i)) line += c == '\'' ? std::string("''") : std::string(1, c);
      folded(line, indent, may_fold);
      i = end;
    }
    put("'");
  }

  // A full line is broken by a backslash, at a space or next to an escape; a second backslash preserves a
  // following space.
  void double_quoted(const std::u32string& text, std::size_t indent, bool may_fold) {
    const auto fold = [&](char32_t next) {
      put("\\");
      new_line(indent);
      if (next == ' ') put("\\");
    };
    bool after_escape = false;
    put("\"");
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char32_t c = text[i];
      const bool inside = may_fold && i > 0 && i + 1 < text.size();
      const bool escaped = c < ' ' || c > '~' || c == '"' || c == '\\';
      if (!escaped && (c == ' ' || after_escape) && inside && column_ > kWidth) fold(c);
      put(escaped ? escape(c) : std::string(1, static_cast<char>(c)));
      if (escaped && inside && column_ > kWidth + 1) fold(text[i + 1]);
      after_escape = escaped;
    }
    put("\"");
  }

  std::string text_ = {};
  std::size_t column_ = 0;
};

}  // namespace

std::string write_yaml(const Value& mapping) {
  if (mapping.empty()) return "{}\n";
  Writer writer;
  writer.mapping(mapping, 0, true);
  return writer.take() + "\n";
}

}  // namespace acc::launcher
