// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace acc::launcher {

/// Foreign text for HTML and the values of attributes in quotes: nothing in it is markup, and control
/// characters are written as `\x1b`.
std::string html_text(std::string_view text);

/// `43 µs`, `61 ms`, `9.1 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`.
std::string duration_text(double seconds);

/// `71 234`: groups of three, with narrow spaces.
std::string count_text(std::int64_t number);

/// `74.2 %`
std::string percent_text(double ratio);

/// `210 MiB`
std::string bytes_text(double bytes);

/// `840 J`, `12.5 Wh`, `3.21 kWh`, `1.2 MWh`
std::string energy_text(double joules);

/// `530 MB/s`, `2.1 GB/s`: powers of ten, as vendors of networks and memory count.
std::string rate_text(double bytes_per_second);

/// `2026-11-27 18:58:33 UTC`
std::string date_text(double time);

}  // namespace acc::launcher
