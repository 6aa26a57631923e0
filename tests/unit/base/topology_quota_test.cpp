// SPDX-License-Identifier: Apache-2.0
#include "acc/base/topology.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace topology_quota_test {

namespace {

struct Groups {
  acc::test::TemporaryFolder folder = {};

  std::optional<double> quota(const std::string& groups) const {
    return acc::cgroup_cpu_quota(folder.write("groups", groups), folder.path() / "fs");
  }
};

}  // namespace

TEST_CASE("cpu_quota: the minimum over the hierarchy of cgroups", "[base]") {
  const Groups groups;
  groups.folder.write("fs/cpu.max", "max 100000\n");
  groups.folder.write("fs/pod/cpu.max", "250000 100000\n");
  groups.folder.write("fs/pod/job/cpu.max", "400000 100000\n");
  CHECK(groups.quota("0::/pod/job\n") == 2.5);
  CHECK(groups.quota("0::/\n") == std::nullopt);
}

TEST_CASE("cpu_quota: the root is used if a container does not see its own folder", "[base]") {
  const Groups groups;
  groups.folder.write("fs/cpu.max", "150000 100000\n");
  CHECK(groups.quota("0::/kubepods/burstable/pod7\n") == 1.5);
}

TEST_CASE("cpu_quota: version 1 has quota and period in two files, -1 is none", "[base]") {
  const Groups groups;
  groups.folder.write("fs/cpu/docker/cpu.cfs_quota_us", "300000\n");
  groups.folder.write("fs/cpu/docker/cpu.cfs_period_us", "100000\n");
  groups.folder.write("fs/cpu/cpu.cfs_quota_us", "-1\n");
  groups.folder.write("fs/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(groups.quota("5:memory:/docker\n4:cpu,cpuacct:/docker\n") == 3.0);
  CHECK(groups.quota("4:cpuset:/docker\n") == std::nullopt);
}

TEST_CASE("cpu_quota: unreadable files mean no limit", "[base]") {
  const Groups groups;
  groups.folder.write("fs/cpu.max", "lots\n");
  CHECK(groups.quota("rubbish\n0::/\n") == std::nullopt);
  CHECK(acc::cgroup_cpu_quota("/no/such/file", "/no/such/folder") == std::nullopt);
}

}  // namespace topology_quota_test
