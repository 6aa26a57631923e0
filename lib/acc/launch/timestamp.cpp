// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/timestamp.hpp"

#include <fmt/format.h>

#include <ctime>

namespace acc::launcher {

std::string timestamp(std::chrono::system_clock::time_point when) {
  using namespace std::chrono;
  const std::time_t seconds = system_clock::to_time_t(floor<std::chrono::seconds>(when));
  const auto milliseconds = floor<std::chrono::milliseconds>(when.time_since_epoch()).count() % 1000;
  std::tm local = {};
  ::localtime_r(&seconds, &local);
  char date[32] = {};
  char zone[8] = {};
  std::strftime(date, sizeof date, "%FT%T", &local);
  std::strftime(zone, sizeof zone, "%z", &local);
  return fmt::format("{}.{:03}{}", date, milliseconds, zone);
}

}  // namespace acc::launcher
