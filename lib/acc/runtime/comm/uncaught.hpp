// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace acc::detail {

/// What the error file is to say of an uncaught exception that another process's failure has caused.
struct UncaughtConsequence {
  std::string text = {};
  std::vector<int> lost_ranks = {};
};

/// Explains such an exception; returns nothing for others.
using ExplainUncaught = std::function<std::optional<UncaughtConsequence>(const std::exception&)>;

/// Asks `explain` first where an exception is not caught, on the thread that threw it. A later one replaces
/// it; an empty one ends that. Returns when no thread is in the one before.
void explain_uncaught_exceptions(ExplainUncaught explain);

}  // namespace acc::detail
