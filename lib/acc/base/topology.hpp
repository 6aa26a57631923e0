// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "acc/base/cpu_set.hpp"

namespace acc {

/// Where a CPU stands in the machine.
struct Cpu {
  int id = 0;
  int numa_node = 0;
  int socket = 0;
  /// The lowest CPU of its physical core, itself where the kernel does not tell.
  int core = 0;
  /// The lowest CPU that shares its last-level cache; -1 where the kernel does not tell.
  int cache = -1;

  bool operator==(const Cpu&) const = default;
};

/// How the CPUs that this process may use and the devices hang together.
struct Topology {
  /// In ascending order.
  std::vector<Cpu> cpus = {};
  /// NUMA node of a device by its PCI address; -1: the kernel does not know. Missing: there is no such
  /// device.
  std::map<std::string, int> device_nodes = {};

  bool operator==(const Topology&) const = default;
};

/// Reads the kernel's description of `cpus` and of the PCI `devices` (`0000:1b:00.0`), a few small files for
/// each. Never throws: what the kernel does not tell keeps its default.
Topology read_topology(const CpuSet& cpus, const std::vector<std::string>& devices,
                       const std::filesystem::path& sysfs = "/sys");

}  // namespace acc
