// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/silence.hpp"

#include <fmt/format.h>

namespace acc::launcher {

std::string seconds_text(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000);
}

std::string silence_text(const std::string& who, const Silence& silence, std::chrono::milliseconds timeout) {
  const std::string lasted = seconds_text(std::chrono::floor<std::chrono::seconds>(silence.duration));
  if (silence.over) return fmt::format("{} answers again, after {}", who, lasted);
  return fmt::format("{} has been silent for {}; it counts as lost after {}", who, lasted,
                     seconds_text(timeout));
}

}  // namespace acc::launcher
