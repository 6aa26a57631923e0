// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"

namespace acc::launcher {

/// A NUMA node and its CPUs in the format of the kernel: `0-7,16-23`.
struct NumaNode {
  int number = 0;
  std::string cpus = {};

  bool operator==(const NumaNode&) const = default;
};

/// The NUMA nodes by number. `root` is /sys/devices/system/node.
std::vector<NumaNode> numa_nodes(const std::filesystem::path& root);

/// The scheduler of this process with the job id: `Slurm (job 17)`, `Kubernetes`, or `none found`.
std::string scheduler_name(const Environment& environment);

/// The site-packages folders of a Python, derived from its path without starting it.
std::vector<std::filesystem::path> site_packages(const std::filesystem::path& python);

/// The versions of the packages in these folders, by lower-case name with `_` for `-` (`torch`,
/// `nvidia_nccl_cu13`). The first of duplicates wins.
std::map<std::string, std::string> installed_packages(const std::vector<std::filesystem::path>& folders);

/// The version of a LibTorch, read from the headers in its folder (the one with `lib/libtorch_cpu.so`);
/// empty if it has none.
std::string libtorch_version(const std::filesystem::path& libtorch);

}  // namespace acc::launcher
