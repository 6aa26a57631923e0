// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "acc/base/progress_page.hpp"

namespace acc::launcher {

/// How far a rank is, as its page says at one moment.
struct ProgressView {
  using Seconds = std::chrono::duration<double>;

  /// Optimizer steps, the time of the last one, and since its end.
  std::int64_t steps = 0;
  std::optional<Seconds> step_time = {};
  std::optional<Seconds> since_step = {};
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  /// May be NaN or infinite.
  std::optional<double> loss = {};
  std::string section = "other";
  Seconds in_section = {};
  /// Empty: it is in none.
  std::string collective = {};
  Seconds in_collective = {};
  /// How many have begun.
  std::int64_t collectives = 0;
  /// The section in which the others wait for it; empty: it is as fast as they are.
  std::string slow_in = {};
  /// In each section until now.
  std::map<std::string, Seconds> spent = {};

  bool operator==(const ProgressView&) const = default;
};

/// `now`: progress_now() when the page was read.
ProgressView view_of(const Progress& progress, std::chrono::nanoseconds now);

/// null where there is none. JSON has no NaN and no infinity: `"nan"`, `"inf"`, `"-inf"`.
nlohmann::json loss_to_json(const std::optional<double>& loss);

/// The field `progress` of a rank; nullptr (null) where a rank says nothing.
nlohmann::json to_json(const std::optional<ProgressView>& progress);

/// Throws nlohmann::json::exception for what to_json() does not make.
std::optional<ProgressView> progress_from_json(const nlohmann::json& in);

}  // namespace acc::launcher
