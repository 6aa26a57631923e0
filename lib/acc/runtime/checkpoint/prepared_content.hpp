// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/runtime/checkpoint/checkpoint.hpp"
#include "acc/runtime/prepared.hpp"

namespace acc {

/// What of a training goes into its checkpoint: all that was prepared, and the registered objects. It refers
/// to them.
CheckpointContent content_of(const Prepared& prepared, const std::vector<Stateful>& registered,
                             int num_processes);

}  // namespace acc
