// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "acc/base/cpu_set.hpp"

namespace acc::launcher {

/// The CPUs that a worker is bound to, and the NUMA nodes that hold them.
struct CpuBinding {
  CpuSet cpus = {};
  std::vector<int> numa_nodes = {};

  bool operator==(const CpuBinding&) const = default;
};

}  // namespace acc::launcher
