// SPDX-License-Identifier: Apache-2.0
#include "acc/base/nvml.hpp"

#include <stdlib.h>
#include <unistd.h>

#include "support/catch.hpp"

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

TEST_CASE("nvml: reports a process on a GPU with its memory and the GPU's utilization", "[base]") {
  ::setenv("FAKE_NVML_GPUS", "2", 1);
  CHECK(acc::query_gpu_processes() ==
        std::vector<acc::GpuProcess>{
            {.gpu = 0, .pid = ::getpid(), .memory_bytes = std::uint64_t{3} << 30U, .gpu_use = 42}});
  ::setenv("FAKE_NVML_GPUS", "0", 1);
  CHECK(acc::query_gpu_processes().empty());
}
