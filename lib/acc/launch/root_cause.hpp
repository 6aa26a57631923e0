// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "acc/launch/launch_report.hpp"

namespace acc::launcher {

/// Whether the worker failed because it lost another one: its error file says so, or what it said last is the
/// text of Gloo, NCCL or a store whose other side is gone.
bool is_consequence(const WorkerFailure& failure);

/// Which of the failed workers is the cause. A consequence only where there is nothing else. Among equals
/// torchrun's rule: the one that was seen first, unless the error file of another says that it failed in an
/// earlier second (two files that are exact: earlier), since a process can take long to die after its
/// exception. `seen` holds at least one, in the order in which they ended; returns the place in it.
std::size_t find_root_cause(const std::vector<WorkerFailure>& seen);

}  // namespace acc::launcher
