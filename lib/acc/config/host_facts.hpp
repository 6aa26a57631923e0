// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"

namespace acc::launcher {

/// A NUMA node and its CPUs as the kernel writes them: `0-7,16-23`.
struct NumaNode {
  int number = 0;
  std::string cpus = {};

  bool operator==(const NumaNode&) const = default;
};

/// The machine's NUMA nodes, by number; `root` is /sys/devices/system/node.
std::vector<NumaNode> numa_nodes(const std::filesystem::path& root);

/// Under which scheduler this process runs, with the job's number: `Slurm (job 17)`, `Kubernetes`; `none
/// found`.
std::string scheduler_name(const Environment& environment);

}  // namespace acc::launcher
