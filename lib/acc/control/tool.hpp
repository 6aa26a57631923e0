// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"

namespace acc {

/// What a helping program (a debugger) may cost.
struct ToolLimits {
  std::chrono::milliseconds time = std::chrono::seconds(30);
  std::size_t bytes = std::size_t{256} << 10U;
};

/// What it wrote to both its streams.
struct ToolOutput {
  std::string text = {};
  /// It was killed for the time that it took.
  bool timed_out = false;
};

/// The program is on the PATH of `environment`.
bool has_tool(const std::string& program, const Environment& environment);

/// Runs a program of PATH with nothing on its standard input, and waits for its end. Absent: there is no such
/// program. What exceeds the limit of bytes is left out. What it started is killed with it.
std::optional<ToolOutput> run_tool(const std::vector<std::string>& command, const Environment& environment,
                                   const ToolLimits& limits);

}  // namespace acc
