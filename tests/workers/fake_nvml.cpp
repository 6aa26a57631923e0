// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 for machines without a GPU: as many GPUs as FAKE_NVML_GPUS says, of the kind
// FAKE_NVML_NAME (otherwise H100s), under the driver FAKE_NVML_DRIVER.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

unsigned count() {
  const char* text = std::getenv("FAKE_NVML_GPUS");
  return text == nullptr ? 0 : static_cast<unsigned>(std::atoi(text));
}

const char* variable(const char* name, const char* otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : text;
}

}  // namespace

extern "C" {

struct FakeMemory {
  unsigned long long total, free, used;
};
struct FakeProcess {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
struct FakeUtilization {
  unsigned gpu, memory;
};

int nvmlInit_v2() {
  return std::getenv("FAKE_NVML_FAILS") == nullptr ? 0 : 9;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* result) {
  *result = count();
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<unsigned long>(index) + 1);
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  std::snprintf(name, length, "%s", variable("FAKE_NVML_NAME", "NVIDIA H100 80GB HBM3"));
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  std::snprintf(uuid, length, "GPU-0000000%lu-0000", reinterpret_cast<unsigned long>(device) - 1);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, FakeMemory* memory) {
  *memory = {80ULL << 30U, 80ULL << 30U, 0};
  return 0;
}
struct FakePciInfo {
  char legacy_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};

int nvmlDeviceGetPciInfo_v3(void* device, FakePciInfo* pci) {
  *pci = {};
  pci->bus = 0x1a + static_cast<unsigned>(reinterpret_cast<unsigned long>(device));
  return 0;
}
// Reports the calling process on the first GPU.
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, FakeProcess* processes) {
  *count = device == reinterpret_cast<void*>(1) ? 1 : 0;
  if (*count == 1) processes[0] = {static_cast<unsigned>(::getpid()), 3ULL << 30U, 0, 0};
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, FakeUtilization* use) {
  *use = {42, 7};
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::snprintf(version, length, "%s", variable("FAKE_NVML_DRIVER", "999.1"));
  return 0;
}
}
