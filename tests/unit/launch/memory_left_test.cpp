// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/memory_left.hpp"

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace memory_left_test {

using namespace acc::launcher;
using acc::test::TemporaryFolder;

namespace {

std::optional<MemoryLeft> left_in(const TemporaryFolder& folder, const std::string& membership) {
  return cgroup_memory_left(
      {.membership = folder.write("membership", membership), .root = folder.path() / "fs"});
}

}  // namespace

TEST_CASE("memory_left: the least that a group of the hierarchy leaves", "[launch]") {
  const TemporaryFolder folder;
  folder.write("fs/pod/memory.max", "1000\n");
  folder.write("fs/pod/memory.current", "900\n");
  folder.write("fs/pod/job/memory.max", "500\n");
  folder.write("fs/pod/job/memory.current", "100\n");
  CHECK(left_in(folder, "0::/pod/job\n") == MemoryLeft{.bytes = 100, .limit = 1000});
  folder.write("fs/pod/memory.max", "max\n");
  CHECK(left_in(folder, "0::/pod/job\n") == MemoryLeft{.bytes = 400, .limit = 500});
}

TEST_CASE("memory_left: files that were read are dropped when memory is needed, shared memory is not",
          "[launch]") {
  const TemporaryFolder folder;
  folder.write("fs/memory.max", "1000\n");
  folder.write("fs/memory.current", "950\n");
  folder.write("fs/memory.stat", "anon 100\nfile 800\nshmem 300\ninactive_file 400\nactive_file 100\n");
  CHECK(left_in(folder, "0::/not/mounted/here\n") == MemoryLeft{.bytes = 550, .limit = 1000});
}

TEST_CASE("memory_left: version 1 has other names, and a great number for no limit", "[launch]") {
  const TemporaryFolder folder;
  folder.write("fs/memory/docker/memory.limit_in_bytes", "1000\n");
  folder.write("fs/memory/docker/memory.usage_in_bytes", "600\n");
  folder.write("fs/memory/docker/memory.stat",
               "inactive_file 9\ntotal_inactive_file 150\ntotal_active_file 50\n");
  folder.write("fs/memory/memory.limit_in_bytes", "9223372036854771712\n");
  folder.write("fs/memory/memory.usage_in_bytes", "5\n");
  CHECK(left_in(folder, "5:cpu:/x\n4:memory:/docker\n") == MemoryLeft{.bytes = 600, .limit = 1000});
  CHECK(left_in(folder, "4:memory:/\n") == std::nullopt);
}

TEST_CASE("memory_left: more than the limit in use leaves nothing", "[launch]") {
  const TemporaryFolder folder;
  folder.write("fs/memory.max", "1000\n");
  folder.write("fs/memory.current", "1100\n");
  CHECK(left_in(folder, "0::/\n")->bytes == 0);
  CHECK(cgroup_memory_left({.membership = "/no/such/file", .root = "/no/such/folder"}) == std::nullopt);
}

TEST_CASE("memory_left: of the machine, what is available, of all that there is", "[launch]") {
  const TemporaryFolder folder;
  CHECK(machine_memory_left(
            folder.write("meminfo", "MemTotal:       2000 kB\nMemFree: 1 kB\nMemAvailable:    1500 kB\n")) ==
        MemoryLeft{.bytes = 1'536'000, .limit = 2'048'000});
  CHECK_FALSE(machine_memory_left(folder.write("other", "MemTotal: 2000 kB\nHugePages_Total: 0\n")));
  CHECK(machine_memory_left()->bytes > 0);
}

}  // namespace memory_left_test
