// SPDX-License-Identifier: Apache-2.0
#include "acc/base/topology.hpp"

#include "support/catch.hpp"
#include "support/fake_sysfs.hpp"

namespace topology_test {

using acc::Cpu;
using acc::read_topology;
using acc::Topology;

TEST_CASE("topology: reads node, socket, core and last-level cache of a CPU", "[base]") {
  const acc::test::FakeSysfs sysfs;
  const Topology topology = read_topology({1, 11, 15}, {}, sysfs.path());
  REQUIRE(topology.cpus.size() == 3);
  CHECK(topology.cpus[0] == Cpu{.id = 1, .numa_node = 0, .socket = 0, .core = 1, .cache = 0});
  CHECK(topology.cpus[1] == Cpu{.id = 11, .numa_node = 1, .socket = 0, .core = 3, .cache = 2});
  CHECK(topology.cpus[2] == Cpu{.id = 15, .numa_node = 3, .socket = 1, .core = 7, .cache = 6});
}

TEST_CASE("topology: reads the node of a device, if the kernel knows it", "[base]") {
  const acc::test::FakeSysfs sysfs;
  const Topology topology =
      read_topology({}, {"0000:1b:00.0", "0000:1c:00.0", "0000:1d:00.0", "0000:99:00.0"}, sysfs.path());
  CHECK(topology.device_nodes ==
        std::map<std::string, int>{{"0000:1b:00.0", 0}, {"0000:1c:00.0", 3}, {"0000:1d:00.0", -1}});
}

TEST_CASE("topology: without information there is one node of single cores", "[base]") {
  const acc::test::TemporaryFolder empty;
  CHECK(read_topology({0, 5}, {}, empty.path()).cpus ==
        std::vector<Cpu>{{.id = 0, .core = 0}, {.id = 5, .core = 5}});
}

TEST_CASE("topology: reads that of this machine", "[base]") {
  const acc::CpuSet cpus = acc::allowed_cpus();
  CHECK(read_topology(cpus, {}).cpus.size() == cpus.size());
}

}  // namespace topology_test
