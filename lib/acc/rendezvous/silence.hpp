// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace acc::launcher {

/// The other side of a link is silent, or was.
struct Silence {
  std::chrono::milliseconds duration = {};
  /// It has been heard again.
  bool over = false;
};

/// When silence is reported, counted from when the other side was last heard.
struct SilenceReports {
  std::chrono::milliseconds first = std::chrono::seconds(3);
  std::chrono::milliseconds interval = std::chrono::seconds(10);
};

/// What a person is told of `who`, which counts as lost after `timeout`.
std::string silence_text(const std::string& who, const Silence& silence, std::chrono::milliseconds timeout);

/// As in "15 s" or "0.5 s".
std::string seconds_text(std::chrono::milliseconds time);

}  // namespace acc::launcher
