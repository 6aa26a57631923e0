// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc {

/// CPU numbers of the kernel, in ascending order, without duplicates.
using CpuSet = std::vector<int>;

/// Parses the kernel's CPU list, as in `0-3,8`. Absent for anything else.
std::optional<CpuSet> parse_cpu_list(std::string_view text);

/// `0-3,8`; empty for an empty set.
std::string format_cpu_list(const CpuSet& cpus);

/// The CPUs that this process may run on: its affinity mask, which is within its cpuset.
CpuSet allowed_cpus();

/// The place of a CPU in the machine.
struct Cpu {
  int id = 0;
  int numa_node = 0;
  int socket = 0;
  /// The lowest CPU of its physical core; itself if the kernel does not tell.
  int core = 0;
  /// The lowest CPU that shares its last-level cache; -1 if the kernel does not tell.
  int cache = -1;

  bool operator==(const Cpu&) const = default;
};

/// The CPUs that this process may use, and the NUMA nodes of the devices.
struct Topology {
  /// In ascending order.
  std::vector<Cpu> cpus = {};
  /// NUMA node of a device by its PCI address; -1 if the kernel does not know it. Unknown devices are
  /// missing.
  std::map<std::string, int> device_nodes = {};

  bool operator==(const Topology&) const = default;
};

/// Reads the kernel's description of `cpus` and of the PCI `devices` (`0000:1b:00.0`), a few small files for
/// each. Never throws: what the kernel does not tell keeps its default.
Topology read_topology(const CpuSet& cpus, const std::vector<std::string>& devices,
                       const std::filesystem::path& sysfs = "/sys");

/// A cgroup of a process.
struct Cgroup {
  /// Of cgroup v1; empty: it is one of v2.
  std::vector<std::string> controllers = {};
  std::string path = {};

  bool has(std::string_view controller) const;
};

/// The lines of `/proc/PID/cgroup`; none when it cannot be read.
std::vector<Cgroup> read_cgroups(const std::filesystem::path& membership);

/// The CPU quota of this process's cgroups in CPUs, the minimum over the hierarchy: cgroup v2's cpu.max or
/// v1's quota. Absent: no limit. Never throws.
std::optional<double> cgroup_cpu_quota(const std::filesystem::path& groups = "/proc/self/cgroup",
                                       const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace acc
