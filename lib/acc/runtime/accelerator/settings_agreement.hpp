// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace acc::detail
