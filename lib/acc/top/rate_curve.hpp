// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "acc/control/step_history.hpp"

namespace acc::launcher {

/// The past of a rank that `acc top` shows: its steps a second in equal parts of the last `span`, the oldest
/// first; absent where they are not known.
using RateCurve = std::vector<std::optional<double>>;

/// `samples`: the oldest first. Steps count from the end of one to the end of the next, in all parts between
/// them. A rank has no rate between the steps of one process and those of the next, nor while its newest step
/// takes no longer than twice the one before; longer, and its rate is 0.
RateCurve rate_curve(const std::vector<StepHistory::Sample>& samples, std::chrono::duration<double> span,
                     std::size_t parts);

/// The highest rate; absent where none is known.
std::optional<double> highest_of(const RateCurve& curve);

}  // namespace acc::launcher
