// SPDX-License-Identifier: Apache-2.0
#include "acc/report/html_text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "acc/base/printable.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

// `2 h 5 min`; without the second unit where it is 0.
std::string two_units(std::int64_t count, std::int64_t size, const char* big, const char* small) {
  const std::string text = fmt::format("{} {}", count / size, big);
  return count % size == 0 ? text : fmt::format("{} {} {}", text, count % size, small);
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string escaped;
  for (const char character : printable(text)) {
    switch (character) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += character;
    }
  }
  return escaped;
}

std::string duration_text(double seconds) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  if (seconds <= 0) return "0 s";
  if (seconds < 0.9995e-3) return fmt::format("{:.3g} µs", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1000);
  if (seconds < 59.95) return rounded_seconds_text(std::chrono::duration<double>(seconds));
  constexpr double kMax = 1e12;
  const auto whole = static_cast<std::int64_t>(std::min(seconds, kMax) + 0.5);
  if (whole < kHour) return two_units(whole, kMinute, "min", "s");
  const std::int64_t minutes = (whole + kMinute / 2) / kMinute;
  if (minutes < kDay / kMinute) return two_units(minutes, kHour / kMinute, "h", "min");
  return two_units((whole + kHour / 2) / kHour, kDay / kHour, "d", "h");
}

std::string count_text(std::int64_t number) {
  std::string text = fmt::to_string(number);
  constexpr std::size_t kGroup = 3;
  for (std::size_t end = text.size(); end > kGroup && text[end - kGroup - 1] != '-'; end -= kGroup)
    text.insert(end - kGroup, "\u202f");
  return text;
}

std::string percent_text(double ratio) {
  return fmt::format("{:.1f} %", ratio * 100);
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.3g} {}", bytes, kUnits.at(unit));
}

std::string energy_text(double joules) {
  constexpr double kWattHour = 3600;
  if (joules < kWattHour) return fmt::format("{:.0f} J", joules);
  // Three digits of 999.6 are those of the next unit.
  constexpr double kMany = 999.5;
  double number = joules / kWattHour;
  for (const char* unit : {"Wh", "kWh"}) {
    if (number < kMany) return fmt::format("{:.3g} {}", number, unit);
    number /= 1000;
  }
  return fmt::format("{:.{}f} MWh", number, number < 10 ? 2 : number < 100 ? 1 : 0);
}

std::string rate_text(double bytes_per_second) {
  constexpr std::array<const char*, 5> kUnits = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  constexpr double kNext = 999.5;
  std::size_t unit = 0;
  for (; bytes_per_second >= kNext && unit + 1 < kUnits.size(); ++unit) bytes_per_second /= 1000;
  return fmt::format("{:.3g} {}", bytes_per_second, kUnits.at(unit));
}

std::string date_text(double time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm parts = {};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", parts);
}

}  // namespace acc::launcher
