// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "support/temporary_folder.hpp"

namespace acc::test {

/// A sysfs of two sockets, each with two NUMA nodes of two cores; hyper-threads are 8 apart (0 and 8 are one
/// core) and every core's last-level cache is its own node's. GPU 1b is on node 0, 1c on node 3, and of 1d
/// the kernel does not know.
class FakeSysfs {
 public:
  FakeSysfs() {
    for (int cpu = 0; cpu < 16; ++cpu) {
      const int core = cpu % 8;
      const int node = core / 2;
      const std::string folder = "devices/system/cpu/cpu" + std::to_string(cpu) + "/";
      write(folder + "topology/physical_package_id", std::to_string(node / 2));
      write(folder + "topology/thread_siblings_list", std::to_string(core) + "," + std::to_string(core + 8));
      write_cache(folder + "cache/index0/", "1", "Data", std::to_string(core));
      write_cache(folder + "cache/index1/", "4", "Instruction", "0-15");
      write_cache(folder + "cache/index3/", "3", "Unified", cpus_of(node));
    }
    for (int node = 0; node < 4; ++node) {
      write("devices/system/node/node" + std::to_string(node) + "/cpulist", cpus_of(node));
    }
    write("devices/system/node/node4/cpulist", "");  // memory alone
    write("bus/pci/devices/0000:1b:00.0/numa_node", "0");
    write("bus/pci/devices/0000:1c:00.0/numa_node", "3");
    write("bus/pci/devices/0000:1d:00.0/numa_node", "-1");
  }

  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  static std::string cpus_of(int node) {
    const int core = node * 2;
    return std::to_string(core) + "-" + std::to_string(core + 1) + "," + std::to_string(core + 8) + "-" +
           std::to_string(core + 9);
  }
  void write(const std::string& name, const std::string& text) { folder_.write(name, text + "\n"); }
  void write_cache(const std::string& folder, const std::string& level, const std::string& type,
                   const std::string& shared) {
    write(folder + "level", level);
    write(folder + "type", type);
    write(folder + "shared_cpu_list", shared);
  }

  TemporaryFolder folder_;
};

}  // namespace acc::test
