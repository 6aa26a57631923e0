// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/self_probe.hpp"

#include <stdlib.h>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace self_probe_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

// The build puts a fake libnvidia-ml.so.1 on this test's library path.

TEST_CASE("self_probe: asks the machine, the driver and the resolver", "[preflight]") {
  ::setenv("FAKE_NVML_GPUS", "3", 1);
  const test::TemporaryFolder folder;
  NodeCheckJob job{.round = {.machine_rank = 1, .num_machines = 2},
                   .workers = 2,
                   .log_folder = (folder.path() / "not" / "yet").string(),
                   .meeting_host = "127.0.0.1"};
  job.environment.set("CUDA_VISIBLE_DEVICES", "2,0");
  const NodeHealth node = probe_self(job, 60s);
  CHECK(node.rank == 1);
  CHECK(node.workers == 2);
  REQUIRE(node.gpus.size() == 2);
  CHECK(node.gpus[1].gpu.index == 2);
  CHECK(node.driver == "999.1");
  CHECK(node.memory_bytes > node.free_memory_bytes);
  CHECK(node.free_memory_bytes > 0);
  CHECK(node.free_disk_bytes.value_or(0) > 0);
  CHECK(node.disk_error.empty());
  CHECK(node.address == "127.0.0.1");
  CHECK(node.own_name);
  CHECK(node.unanswered.empty());
}

TEST_CASE("self_probe: says what is wrong with a folder and a name", "[preflight]") {
  ::setenv("FAKE_NVML_GPUS", "0", 1);
  NodeCheckJob job{.round = {.num_machines = 2}, .log_folder = "/proc/1", .meeting_host = "nowhere.invalid"};
  job.environment.set("GLOO_SOCKET_IFNAME", "eth0");
  const NodeHealth node = probe_self(job, 60s);
  CHECK_FALSE(node.disk_error.empty());
  CHECK_FALSE(node.meeting.lookup.error.empty());
  CHECK(node.address.empty());
  CHECK_FALSE(node.own_name);
}

TEST_CASE("self_probe: a driver that does not answer is named", "[preflight]") {
  ::setenv("FAKE_NVML_HANGS", "1", 1);
  const NodeHealth node = probe_self({.log_folder = "/tmp", .meeting_host = "127.0.0.1"}, 4s);
  CHECK(node.unanswered == std::vector<std::string>{"the NVIDIA driver"});
  ::unsetenv("FAKE_NVML_HANGS");
}

}  // namespace self_probe_test
