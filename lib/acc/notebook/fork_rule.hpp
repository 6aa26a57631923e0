// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/base/environment.hpp"

namespace acc::detail {

/// Whether this process has initialized CUDA's driver. Neither loads nor initializes it.
bool has_used_cuda();

/// Throws Error{usage} where workers that are forks of this process could not train: it is a worker itself,
/// has joined a job, or has used CUDA, whose state no fork can use.
void require_fork_can_train(const Environment& environment);

}  // namespace acc::detail
