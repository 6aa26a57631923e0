// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 for machines without a GPU: as many GPUs as FAKE_NVML_GPUS says, of the kind
// FAKE_NVML_NAME (otherwise H100s), under the driver FAKE_NVML_DRIVER. Of one GPU the health can be set, as
// INDEX:NUMBER: FAKE_NVML_ECC (errors), FAKE_NVML_SLOWDOWN (bits of the reasons), FAKE_NVML_USED (GiB),
// FAKE_NVML_REMAPPED (1: waits for a reset, 2: failed), FAKE_NVML_LOST (1). It starts after FAKE_NVML_DELAY
// seconds.
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

// The number of a variable INDEX:NUMBER if it is about this device, else 0.
unsigned long long number_of(const char* name, void* device) {
  unsigned index = 0;
  unsigned long long number = 0;
  if (std::sscanf(variable(name, ""), "%u:%llu", &index, &number) != 2) return 0;
  return index + 1UL == reinterpret_cast<unsigned long>(device) ? number : 0;
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
  if (std::getenv("FAKE_NVML_HANGS") != nullptr) ::pause();
  ::sleep(static_cast<unsigned>(std::atoi(variable("FAKE_NVML_DELAY", "0"))));
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
  constexpr int kGpuIsLost = 15;
  return number_of("FAKE_NVML_LOST", *device) == 0 ? 0 : kGpuIsLost;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  std::snprintf(name, length, "%s", variable("FAKE_NVML_NAME", "NVIDIA H100 80GB HBM3"));
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  std::snprintf(uuid, length, "GPU-0000000%lu-0000", reinterpret_cast<unsigned long>(device) - 1);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, FakeMemory* memory) {
  const unsigned long long used = number_of("FAKE_NVML_USED", device) << 30U;
  *memory = {80ULL << 30U, (80ULL << 30U) - used, used};
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* errors) {
  *errors = type == 1 && counter == 0 ? number_of("FAKE_NVML_ECC", device) : 0;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  constexpr unsigned long long kIdle = 1;
  *reasons = kIdle | number_of("FAKE_NVML_SLOWDOWN", device);
  return 0;
}
int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  const unsigned long long state = number_of("FAKE_NVML_REMAPPED", device);
  *corrected = *uncorrected = 0;
  *pending = state == 1 ? 1 : 0;
  *failed = state == 2 ? 1 : 0;
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
// Reports the calling process on the first GPU, unless FAKE_NVML_NO_PROCESSES is set, as in a container.
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, FakeProcess* processes) {
  const bool shows = std::getenv("FAKE_NVML_NO_PROCESSES") == nullptr;
  *count = shows && device == reinterpret_cast<void*>(1) ? 1 : 0;
  if (*count == 1) processes[0] = {static_cast<unsigned>(::getpid()), 3ULL << 30U, 0, 0};
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, FakeUtilization* use) {
  *use = {42, 7};
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 123'400;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  *millijoules = 5'000'500;
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::snprintf(version, length, "%s", variable("FAKE_NVML_DRIVER", "999.1"));
  return 0;
}
}
