// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/estimate_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace acc::launcher {
namespace {

// Characters, not bytes: titles may hold any.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

// Python's rule: of an odd number of blanks the extra one is left if the width is odd, else right.
std::string centred(const std::string& text, std::size_t width) {
  const std::size_t length = width_of(text);
  if (length >= width) return text;
  const std::size_t blanks = width - length;
  const std::size_t left = blanks / 2 + (blanks & width & 1U);
  return std::string(left, ' ') + text + std::string(blanks - left, ' ');
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

struct Corners {
  std::string_view left, middle, right;
};

std::string rule(const std::vector<std::size_t>& widths, const Corners& corners) {
  std::string line(corners.left);
  for (std::size_t i = 0; i < widths.size(); ++i)
    line += repeated("─", widths[i]) + std::string(i + 1 < widths.size() ? corners.middle : corners.right);
  return line + "\n";
}

std::string cells(const std::vector<std::string>& texts, const std::vector<std::size_t>& widths) {
  std::string line = "│";
  for (std::size_t i = 0; i < texts.size(); ++i) line += centred(texts[i], widths[i]) + "│";
  return line + "\n";
}

}  // namespace

std::string size_text(double bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"bytes", "KB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  std::string_view name = kUnits[unit];
  if (bytes >= 1024) {
    bytes /= 1024;
    name = "PB";
  }
  if (unit == 0 && bytes == std::floor(bytes))
    return fmt::format("{} bytes", static_cast<std::int64_t>(bytes));
  std::string number = fmt::format("{:.2f}", bytes);
  if (number.ends_with('0')) number.pop_back();
  return fmt::format("{} {}", number, name);
}

std::string framed_table(const std::string& title, const std::vector<std::string>& headers,
                         const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < headers.size(); ++column) {
    std::size_t width = width_of(headers[column]);
    for (const auto& row : rows) width = std::max(width, width_of(row[column]));
    widths.push_back(width);
  }
  const std::size_t sum = std::accumulate(widths.begin(), widths.end(), std::size_t{0});
  const std::size_t title_width = width_of(title);
  // accelerate's arithmetic, kept for the look of its tables.
  if (title_width > sum) {
    const auto difference =
        static_cast<std::int64_t>(title_width) - static_cast<std::int64_t>(sum + headers.size() + 1);
    widths.back() += 2 * static_cast<std::size_t>(std::abs(difference));
  }
  const std::size_t inner = std::accumulate(widths.begin(), widths.end(), headers.size() - 1);
  std::string text = rule({inner}, {"┌", "", "┐"}) + cells({title}, {inner});
  text += rule(widths, {"├", "┬", "┤"}) + cells(headers, widths);
  text += rule(widths, {"├", "┼", "┤"});
  for (const auto& row : rows) text += cells(row, widths);
  return text + rule(widths, {"└", "┴", "┘"});
}

std::string estimate_table(const std::string& model, const ModelSize& size,
                           const std::vector<std::string>& dtypes) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& dtype : dtypes) {
    const double divisor = dtype == "float16" ? 2 : dtype == "int8" ? 4 : dtype == "int4" ? 8 : 1;
    const auto total = static_cast<double>(size.total);
    const std::string training = divisor == 1   ? size_text(4 * total)
                                 : divisor == 2 ? size_text(2 * total)
                                                : std::string("N/A");
    rows.push_back({dtype, size_text(static_cast<double>(size.largest_layer) / divisor),
                    size_text(total / divisor), training});
  }
  return framed_table(fmt::format("Memory Usage for loading `{}`", model),
                      {"dtype", "Largest Layer", "Total Size", "Training using Adam"}, rows);
}

}  // namespace acc::launcher
