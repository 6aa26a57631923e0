// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/accelerator/accelerator_options.hpp"

namespace acc::detail {

/// Names and values of the settings of a training that decide what a process computes, or which calls it
/// makes together with the others.
using SharedSettings = std::vector<std::pair<std::string, std::string>>;
SharedSettings shared_settings(const AcceleratorOptions& options, MixedPrecision precision,
                               int gradient_accumulation_steps);

/// An Error that names the first setting in which a rank differs from rank 0; nothing when all ranks agree.
/// All have the same names, in the order of rank 0's, unless they run other versions of the library.
std::optional<Error> find_disagreement(const std::vector<SharedSettings>& by_rank);

/// Throws the same Error{usage} on every rank of the group when the values differ between ranks.
void require_same_settings(const SharedSettings& settings, ProcessGroup& group);

/// What rank 0 has, and what the first rank has that differs.
struct RankDifference {
  std::string first = {};
  std::string other = {};
  std::ptrdiff_t other_rank = 0;
};

/// The difference between the texts of the group's ranks, which call it together; nothing when all have the
/// same. Null is a process alone.
std::optional<RankDifference> find_difference(const std::string& text, ProcessGroup* group);

}  // namespace acc::detail
