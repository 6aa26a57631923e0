// SPDX-License-Identifier: Apache-2.0
// Which executions are tried, and what is told of one that goes wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exploration/execution.hpp"

namespace exploration {

/// How an execution went.
struct Outcome {
  std::string failure = {};  ///< Empty if all was right.
  std::vector<Deviation> deviations = {};
  std::vector<std::string> trace = {};
};

using Execute = std::function<Outcome(Chooser& chooser, bool traced)>;

struct Report {
  std::uint64_t executions = 0;
  bool complete = false;      ///< Within the bound, all executions were tried.
  std::string failure = {};   ///< Of the first that went wrong.
  std::string schedule = {};  ///< Its deviations, as few as possible.
  std::uint64_t seed = 0;     ///< Of the walk that found it; 0 for the other search.
  std::vector<std::string> trace = {};
};

/// Depth first, all executions that deviate `bound` times from the one in which each fiber runs until it has
/// to wait, and then the next one; by another fiber that runs, a timer that expires early or a delayed store.
/// The fault may hit any point besides. Ends at the first failure.
Report search(const Execute& execute, int bound, std::uint64_t max_executions);

/// `count` executions of random choices, those of the walk `first_seed + i`.
Report walk(const Execute& execute, std::uint64_t first_seed, std::uint64_t count);

/// The execution of a schedule, traced. Throws std::invalid_argument if the text is not one.
Outcome repeat(const Execute& execute, const std::string& schedule);

/// "0@12>1 1@40~": fiber 0 at its point 12 lets fiber 1 run, and the store of fiber 1 at point 40 is delayed.
/// The others are `*` (the timeout of the named fiber expires), `!` (its process is killed) and `|` (its
/// process stands still).
std::string to_text(const std::vector<Deviation>& deviations);

}  // namespace exploration
