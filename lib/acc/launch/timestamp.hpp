// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace acc::launcher {

/// Local time with its offset, ISO 8601, to the millisecond: `2026-11-21T07:43:37.262+0100`.
std::string timestamp(std::chrono::system_clock::time_point when);

}  // namespace acc::launcher
