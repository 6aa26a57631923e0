// SPDX-License-Identifier: Apache-2.0
// What ranks do in an exploration of the exchange in shared memory, and what must come of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "acc/runtime/comm/cpu/memory_group.hpp"
#include "exploration/execution.hpp"
#include "exploration/search.hpp"

namespace exploration {

using Kind = acc::detail::Collective::Kind;

/// A slot holds 48 of them.
inline constexpr std::size_t kChunkFloats = acc::detail::Segment::kChunkBytes / sizeof(float);

struct Step {
  Kind kind = Kind::all_reduce;
  std::size_t floats = 1;
  int root = 0;
};

/// How a rank learns that its operations are done.
enum class Waiting : std::uint8_t {
  for_each,      ///< It waits for each before it begins the next.
  for_last,      ///< It begins all, and waits for the last.
  callbacks,     ///< It begins all, and is told by their callbacks.
  chained,       ///< The callback of each begins the next.
  two_threads,   ///< A thread waits for the first, another for the rest.
  with_timeout,  ///< As for_each, again and again with a timeout.
};

/// What must come of the operations.
enum class Promise : std::uint8_t {
  right,            ///< All are right on all ranks.
  right_or_failed,  ///< As long as a rank is lost, those of the others are right or fail, and all after a
                    ///< failure.
  left,        ///< The victim leaves after its steps; those of the others are right, and fail after that.
  last_fails,  ///< The last one fails on all ranks.
};

struct Scenario {
  std::string name = {};
  int ranks = 2;
  std::vector<Step> steps = {};
  Waiting waiting = Waiting::for_last;
  Promise promise = Promise::right;
  Possibilities possibilities = {};
  /// Makes the steps of a rank others than `steps`.
  std::function<void(int rank, std::vector<Step>& steps)> vary = {};
  std::chrono::milliseconds timeout = std::chrono::minutes(1);
  bool core_for_each = false;
};

/// Executions of the scenario.
Execute executions_of(const Scenario& scenario);

}  // namespace exploration
