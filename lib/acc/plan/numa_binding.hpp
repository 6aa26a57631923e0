// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/base/topology.hpp"
#include "acc/plan/cpu_binding.hpp"
#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// How torchrun's `--numa-binding` divides the CPUs.
enum class NumaBinding {
  node,          ///< all CPUs of the node
  socket,        ///< all CPUs of the node's socket
  exclusive,     ///< the node's physical cores, divided among those who share it
  core_complex,  ///< one of the node's groups that share a last-level cache
};

/// By local rank. `homes` holds the NUMA nodes of the devices in their order: worker i lives on home i, and
/// begins anew where there are more workers than homes. Pure. Throws Error{usage}, in the words of `origin`,
/// where no binding is possible.
std::vector<CpuBinding> bind_workers(NumaBinding binding, const Topology& topology,
                                     const std::vector<int>& homes, int workers, const std::string& origin);

/// The homes of workers without devices: each node that has CPUs gets a block of neighbouring ranks.
std::vector<int> spread_over_nodes(const Topology& topology, int workers);

/// The binding of each worker as the settings ask for it; empty: none was asked for. Workers that use GPUs
/// live on the node of theirs in `worker_environment`, the others are spread over the nodes.
std::vector<CpuBinding> decide_numa_binding(const LaunchInputs& inputs, const Settings& settings,
                                            const Environment& worker_environment, int workers,
                                            bool uses_gpus);

}  // namespace acc::launcher
