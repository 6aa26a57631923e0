// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/base/topology.hpp"
#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// Returns the CPUs of each worker by local rank. `homes` are the NUMA nodes of the devices; worker i uses
/// home i modulo their number. Throws Error{usage} with `origin` if no binding is possible.
std::vector<CpuBinding> bind_workers(NumaBinding binding, const Topology& topology,
                                     const std::vector<int>& homes, int workers, const std::string& origin);

/// The homes of workers without devices: each node that has CPUs gets a block of consecutive ranks.
std::vector<int> spread_over_nodes(const Topology& topology, int workers);

/// The binding of each worker according to the settings; empty if none is requested. Workers with GPUs are
/// bound to the NUMA nodes of the GPUs visible in `worker_environment`, the others are spread over the
/// nodes.
std::vector<CpuBinding> decide_numa_binding(const LaunchInputs& inputs, const Settings& settings,
                                            const Environment& worker_environment, int workers,
                                            bool uses_gpus);

}  // namespace acc::launcher
