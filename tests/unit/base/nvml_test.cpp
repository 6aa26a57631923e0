// SPDX-License-Identifier: Apache-2.0
#include "acc/base/nvml.hpp"

#include <stdlib.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/in_child.hpp"

namespace nvml_test {

// The build puts a fake libnvidia-ml.so.1 on this test's library path.

TEST_CASE("nvml: reports every GPU with name, UUID, memory and PCI address", "[base]") {
  ::setenv("FAKE_NVML_GPUS", "2", 1);
  const acc::GpuInventory inventory = acc::query_nvml();
  CHECK(inventory.driver_version == "999.1");
  REQUIRE(inventory.gpus.size() == 2);
  CHECK(inventory.gpus[1] == acc::Gpu{.index = 1,
                                      .name = "NVIDIA H100 80GB HBM3",
                                      .uuid = "GPU-00000001-0000",
                                      .memory_bytes = std::uint64_t{80} << 30U,
                                      .pci_address = "0000:1c:00.0"});
}

TEST_CASE("nvml: a driver that does not start means no GPU, not an error", "[base]") {
  ::setenv("FAKE_NVML_GPUS", "2", 1);
  ::setenv("FAKE_NVML_FAILS", "1", 1);
  CHECK(acc::query_nvml().gpus.empty());
  ::unsetenv("FAKE_NVML_FAILS");
}

TEST_CASE("nvml: a driver that never answers holds nobody up", "[base]") {
  ::setenv("FAKE_NVML_GPUS", "2", 1);
  // In a process of its own, for threads that never end.
  CHECK(acc::test::in_child([] {
          ::setenv("FAKE_NVML_HANGS", "1", 1);
          return acc::query_nvml().driver_version.empty() && acc::query_gpu_processes().empty() ? 0 : 1;
        }) == 0);
}

TEST_CASE("nvml: reports a process on a GPU with its memory and the GPU's utilization", "[base]") {
  ::setenv("FAKE_NVML_GPUS", "2", 1);
  CHECK(acc::query_gpu_processes() == std::vector<acc::GpuProcess>{{.gpu = 0,
                                                                    .pid = ::getpid(),
                                                                    .memory_bytes = std::uint64_t{3} << 30U,
                                                                    .gpu_use = 42,
                                                                    .gpu_watts = 123.4}});
  ::setenv("FAKE_NVML_GPUS", "0", 1);
  CHECK(acc::query_gpu_processes().empty());
}

TEST_CASE("nvml: reports what all processes use of each GPU", "[base]") {
  ::setenv("FAKE_NVML_GPUS", "2", 1);
  ::setenv("FAKE_NVML_USED", "1:20", 1);
  const std::vector<acc::GpuUse> uses = acc::query_gpu_use().value();
  ::unsetenv("FAKE_NVML_USED");
  REQUIRE(uses.size() == 2);
  CHECK(uses[0].processes == std::vector<pid_t>{::getpid()});
  CHECK(uses[1] == acc::GpuUse{.index = 1,
                               .percent = 42,
                               .memory_bytes = std::uint64_t{20} << 30U,
                               .watts = 123.4,
                               .joules = 5000.5,
                               .uuid = "GPU-00000001-0000",
                               .processes = std::vector<pid_t>()});
  ::setenv("FAKE_NVML_GPUS", "0", 1);
  CHECK(acc::query_gpu_use()->empty());
  ::setenv("FAKE_NVML_FAILS", "1", 1);
  CHECK_FALSE(acc::query_gpu_use());
  ::unsetenv("FAKE_NVML_FAILS");
}

TEST_CASE("nvml: reports what is wrong with a GPU", "[base]") {
  ::setenv("FAKE_NVML_GPUS", "3", 1);
  ::setenv("FAKE_NVML_ECC", "0:2", 1);
  ::setenv("FAKE_NVML_SLOWDOWN", "1:72", 1);
  ::setenv("FAKE_NVML_USED", "1:20", 1);
  ::setenv("FAKE_NVML_REMAPPED", "0:1", 1);
  ::setenv("FAKE_NVML_LOST", "2:1", 1);
  const acc::GpuHealthReport report = acc::query_gpu_health();
  for (const char* name : {"ECC", "SLOWDOWN", "USED", "REMAPPED", "LOST"})
    ::unsetenv((std::string("FAKE_NVML_") + name).c_str());
  CHECK(report.driver_version == "999.1");
  REQUIRE(report.gpus.size() == 3);
  CHECK(report.gpus[0].gpu.index == 0);
  CHECK(report.gpus[0].uncorrected_errors == 2U);
  CHECK(report.gpus[0].needs_reset);
  CHECK_FALSE(report.gpus[0].needs_repair);
  CHECK(report.gpus[0].slowdowns.empty());
  CHECK(report.gpus[1].uncorrected_errors == 0U);
  CHECK(report.gpus[1].free_bytes == std::uint64_t{60} << 30U);
  CHECK(report.gpus[1].slowdowns == std::vector<std::string>{"heat"});
  CHECK(report.gpus[2].lost);
  CHECK(report.gpus[2].free_bytes == std::nullopt);
}

TEST_CASE("nvml: a driver that takes its time to start is asked for the health of its GPUs", "[base]") {
  ::setenv("FAKE_NVML_GPUS", "1", 1);
  ::setenv("FAKE_NVML_DELAY", "3", 1);  // longer than query_nvml() waits
  const acc::GpuHealthReport report = acc::query_gpu_health();
  ::unsetenv("FAKE_NVML_DELAY");
  CHECK(report.driver_version == "999.1");
  REQUIRE(report.gpus.size() == 1);
  CHECK(report.gpus[0].gpu.name == "NVIDIA H100 80GB HBM3");
}

TEST_CASE("nvml: one reason of a slowdown is told, the general one if there is no other", "[base]") {
  ::setenv("FAKE_NVML_GPUS", "1", 1);
  const auto reasons = [](const char* bits) {
    ::setenv("FAKE_NVML_SLOWDOWN", bits, 1);
    return acc::query_gpu_health().gpus.at(0).slowdowns;
  };
  CHECK(reasons("0:8") == std::vector<std::string>{"hardware slowdown"});
  CHECK(reasons("0:200") == std::vector<std::string>{"heat", "power brake"});
  CHECK(reasons("0:4").empty());  // a power limit that was set
  ::unsetenv("FAKE_NVML_SLOWDOWN");
}

}  // namespace nvml_test
