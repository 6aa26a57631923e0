// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace acc::launcher {

/// How far a rank was at moments of its past, the oldest first.
struct StepHistory {
  struct Sample {
    std::chrono::duration<double> age = {};
    /// As in ProgressView: optimizer steps, and the time in these sections since the worker began.
    std::int64_t steps = 0;
    std::chrono::duration<double> data = {};
    std::chrono::duration<double> communication = {};
    /// Since the end of the last step.
    std::chrono::duration<double> since_step = {};
    /// Another number is another process.
    std::uint64_t process = 0;

    bool operator==(const Sample&) const = default;
  };
  /// One each second, of ten minutes; one each minute, of a day.
  std::vector<Sample> seconds = {};
  std::vector<Sample> minutes = {};

  bool operator==(const StepHistory&) const = default;
};

nlohmann::json to_json(const StepHistory& history);

/// Throws nlohmann::json::exception for what to_json() does not make.
StepHistory step_history_from_json(const nlohmann::json& in);

}  // namespace acc::launcher
