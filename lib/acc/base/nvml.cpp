// SPDX-License-Identifier: Apache-2.0
#include "acc/base/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <memory>

namespace acc {
namespace {

// The few declarations of nvml.h that are used; NVML's interface is stable.
using Device = void*;
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct PciInfo {
  char legacy_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char id[32];
};
constexpr int kSuccess = 0;

template <typename Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

std::string sysfs_address(const PciInfo& pci) {
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
  return text.data();
}

}  // namespace

GpuInventory query_nvml() {
  GpuInventory inventory;
  const std::unique_ptr<void, int (*)(void*)> library(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL),
                                                      [](void* handle) { return ::dlclose(handle); });
  if (!library) return inventory;
  auto* init = symbol<int()>(library.get(), "nvmlInit_v2");
  auto* shutdown = symbol<int()>(library.get(), "nvmlShutdown");
  auto* count_devices = symbol<int(unsigned*)>(library.get(), "nvmlDeviceGetCount_v2");
  auto* handle_of = symbol<int(unsigned, Device*)>(library.get(), "nvmlDeviceGetHandleByIndex_v2");
  if (init == nullptr || shutdown == nullptr || count_devices == nullptr || handle_of == nullptr)
    return inventory;
  if (init() != kSuccess) return inventory;

  auto* name_of = symbol<int(Device, char*, unsigned)>(library.get(), "nvmlDeviceGetName");
  auto* uuid_of = symbol<int(Device, char*, unsigned)>(library.get(), "nvmlDeviceGetUUID");
  auto* memory_of = symbol<int(Device, Memory*)>(library.get(), "nvmlDeviceGetMemoryInfo");
  auto* pci_of = symbol<int(Device, PciInfo*)>(library.get(), "nvmlDeviceGetPciInfo_v3");
  auto* driver_of = symbol<int(char*, unsigned)>(library.get(), "nvmlSystemGetDriverVersion");
  std::array<char, 128> text = {};
  if (driver_of != nullptr && driver_of(text.data(), text.size()) == kSuccess) {
    inventory.driver_version = text.data();
  }
  unsigned count = 0;
  if (count_devices(&count) != kSuccess) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    Gpu gpu{.index = static_cast<int>(i)};
    Device device = nullptr;
    if (handle_of(i, &device) == kSuccess) {
      if (name_of != nullptr && name_of(device, text.data(), text.size()) == kSuccess) gpu.name = text.data();
      if (uuid_of != nullptr && uuid_of(device, text.data(), text.size()) == kSuccess) gpu.uuid = text.data();
      Memory memory = {};
      if (memory_of != nullptr && memory_of(device, &memory) == kSuccess) gpu.memory_bytes = memory.total;
      PciInfo pci = {};
      if (pci_of != nullptr && pci_of(device, &pci) == kSuccess) gpu.pci_address = sysfs_address(pci);
    }
    inventory.gpus.push_back(std::move(gpu));
  }
  shutdown();
  return inventory;
}

}  // namespace acc
