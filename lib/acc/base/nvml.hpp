// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace acc {

/// One NVIDIA GPU as NVML tells it.
struct Gpu {
  int index = 0;
  std::string name = {};
  std::string uuid = {};
  std::uint64_t memory_bytes = 0;
  /// As sysfs names it, `0000:1b:00.0`; empty where NVML does not tell.
  std::string pci_address = {};

  bool operator==(const Gpu&) const = default;
};

/// What NVML answered.
struct GpuInventory {
  std::vector<Gpu> gpus = {};
  /// Empty where there is no driver.
  std::string driver_version = {};
};

/// Opens `libnvidia-ml.so.1` from the library path for the length of the call. No driver, no library, no
/// permission: an empty answer, never an exception.
GpuInventory query_nvml();

/// A process that holds a context on a GPU.
struct GpuProcess {
  int gpu = 0;
  pid_t pid = 0;
  /// 0 where the driver does not tell.
  std::uint64_t memory_bytes = 0;
  /// Of the whole GPU, whoever uses it, in percent.
  std::optional<int> gpu_use = {};

  bool operator==(const GpuProcess&) const = default;
};

/// Every process on a GPU of this machine, as far as the driver shows them; in a container it may show none.
/// Fails as query_nvml() does: with an empty answer.
std::vector<GpuProcess> query_gpu_processes();

}  // namespace acc
