// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "acc/launch/launch_report.hpp"

namespace acc {

/// Which of the failed workers is the cause: torchrun's rule. The one that was seen first, unless the error
/// file of another says that it failed in an earlier second: a process can take long to die after its
/// exception. `seen` holds at least one, in the order in which they ended; returns the place in it.
std::size_t find_root_cause(const std::vector<WorkerFailure>& seen);

}  // namespace acc
