// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/exit_status.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace exit_status_oom_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("oom: reads memory.events of cgroup v2", "[launch]") {
  const test::TemporaryFolder folder;
  const CgroupPaths paths = {folder.write("membership", "0::/a/b\n"), folder.path() / "fs"};
  CHECK_FALSE(count_oom_kills(paths));
  folder.write("fs/a/b/memory.events", "low 0\nhigh 0\noom 9\noom_kill 3\noom_group_kill 0\n");
  CHECK(count_oom_kills(paths) == 3U);
}

TEST_CASE("oom: reads memory.oom_control of cgroup v1", "[launch]") {
  const test::TemporaryFolder folder;
  const CgroupPaths paths = {folder.write("membership", "5:cpu:/c\n4:hugetlb,memory:/m\n0::/\n"),
                             folder.path() / "fs"};
  folder.write("fs/memory/m/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  CHECK(count_oom_kills(paths) == 2U);
}

TEST_CASE("oom: in a container the root of the mount is our cgroup", "[launch]") {
  const test::TemporaryFolder folder;
  const CgroupPaths paths = {folder.write("membership", "0::/docker/123\n"), folder.path() / "fs"};
  folder.write("fs/memory.events", "oom_kill 1\n");
  CHECK(count_oom_kills(paths) == 1U);
}

TEST_CASE("oom: only an increased count is evidence", "[launch]") {
  const test::TemporaryFolder folder;
  const CgroupPaths paths = {folder.write("membership", "0::/\n"), folder.path() / "fs"};
  folder.write("fs/memory.events", "oom_kill 4\n");
  const OomWatch watch(paths);
  CHECK_FALSE(watch.has_killed());
  folder.write("fs/memory.events", "oom_kill 5\n");
  CHECK(watch.has_killed());
}

TEST_CASE("oom: without a cgroup there is no evidence", "[launch]") {
  const test::TemporaryFolder folder;
  const OomWatch watch({folder.path() / "none", folder.path()});
  CHECK_FALSE(watch.has_killed());
}

TEST_CASE("oom: the lowest limit up to the root counts, with its peak", "[launch]") {
  const test::TemporaryFolder folder;
  const CgroupPaths paths = {folder.write("membership", "0::/job/step\n"), folder.path() / "fs"};
  CHECK_FALSE(cgroup_memory(paths));
  folder.write("fs/job/step/memory.max", "max\n");
  folder.write("fs/job/step/memory.peak", "5000\n");
  CHECK_FALSE(cgroup_memory(paths));
  folder.write("fs/job/memory.max", "4096\n");
  CHECK(cgroup_memory(paths) == CgroupMemory{.limit = 4096});
  folder.write("fs/job/memory.peak", "4095\n");
  CHECK(cgroup_memory(paths) == CgroupMemory{.limit = 4096, .peak = 4095});
}

TEST_CASE("oom: the limit of cgroup v1, and that there is none", "[launch]") {
  const test::TemporaryFolder folder;
  const CgroupPaths paths = {folder.write("membership", "4:memory:/m\n0::/\n"), folder.path() / "fs"};
  folder.write("fs/memory/m/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(cgroup_memory(paths));
  folder.write("fs/memory/m/memory.limit_in_bytes", "8192\n");
  folder.write("fs/memory/m/memory.max_usage_in_bytes", "8000\n");
  CHECK(cgroup_memory(paths) == CgroupMemory{.limit = 8192, .peak = 8000});
}

}  // namespace exit_status_oom_test
