// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

}  // namespace acc
