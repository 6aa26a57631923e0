// SPDX-License-Identifier: Apache-2.0
#include "acc/base/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "acc/base/blocking_call.hpp"
#include "acc/base/log.hpp"
#include "acc/base/text.hpp"

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
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr int kSuccess = 0;
constexpr auto kLimit = std::chrono::seconds(2);
constexpr unsigned long long kNotTold = ~0ULL;

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

// Null if there is none.
Library load_library() {
  return Library(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
}

/// The library, initialized for the lifetime of the object.
class Nvml {
 public:
  explicit Nvml(Library library) : library_(std::move(library)) {
    if (library_ == nullptr) return;
    auto* init = find<int()>("nvmlInit_v2");
    count_devices_ = find<int(unsigned*)>("nvmlDeviceGetCount_v2");
    handle_of_ = find<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
    shutdown_ = find<int()>("nvmlShutdown");
    const bool complete = init != nullptr && count_devices_ != nullptr && handle_of_ != nullptr;
    works_ = complete && shutdown_ != nullptr && init() == kSuccess;
  }
  ~Nvml() {
    if (works_) shutdown_();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  explicit operator bool() const { return works_; }

  template <typename Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(library_.get(), name));
  }
  unsigned count() const {
    unsigned count = 0;
    return count_devices_(&count) == kSuccess ? count : 0;
  }
  /// Null if the device does not answer.
  Device device(unsigned index) const {
    Device device = nullptr;
    return handle_of_(index, &device) == kSuccess ? device : nullptr;
  }

 private:
  Library library_;
  int (*count_devices_)(unsigned*) = nullptr;
  int (*handle_of_)(unsigned, Device*) = nullptr;
  int (*shutdown_)() = nullptr;
  bool works_ = false;
};

std::string sysfs_address(const PciInfo& pci) {
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
  return text.data();
}

}  // namespace

namespace {

// Calls of a driver that is broken may never return: `ask` is then left to its thread, which ends with the
// process. Absent: there was no answer in time.
template <typename Answer>
std::optional<Answer> ask_in_time(Answer (*ask)(Library)) {
  Library library = load_library();
  if (library == nullptr) return Answer{};
  const auto held = std::make_shared<Library>(std::move(library));
  BlockingCall<Answer> call([ask, held] { return ask(std::move(*held)); });
  return call.result(std::chrono::steady_clock::now() + kLimit);
}

// The GPUs that the kernel has devices for, /dev/nvidia0 and so on.
GpuInventory count_devices() {
  GpuInventory inventory;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/dev", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    constexpr std::string_view kPrefix = "nvidia";
    const auto index = name.starts_with(kPrefix)
                           ? parse_integer(std::string_view(name).substr(kPrefix.size()))
                           : std::nullopt;
    if (index) inventory.gpus.push_back({.index = static_cast<int>(*index)});
  }
  std::ranges::sort(inventory.gpus, {}, &Gpu::index);
  return inventory;
}

GpuInventory inventory_of(const Nvml& nvml) {
  GpuInventory inventory;
  if (!nvml) return inventory;
  auto* name_of = nvml.find<int(Device, char*, unsigned)>("nvmlDeviceGetName");
  auto* uuid_of = nvml.find<int(Device, char*, unsigned)>("nvmlDeviceGetUUID");
  auto* memory_of = nvml.find<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo");
  auto* pci_of = nvml.find<int(Device, PciInfo*)>("nvmlDeviceGetPciInfo_v3");
  auto* driver_of = nvml.find<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  std::array<char, 128> text = {};
  if (driver_of != nullptr && driver_of(text.data(), text.size()) == kSuccess) {
    inventory.driver_version = text.data();
  }
  for (unsigned i = 0; i < nvml.count(); ++i) {
    Gpu gpu{.index = static_cast<int>(i)};
    if (const Device device = nvml.device(i); device != nullptr) {
      if (name_of != nullptr && name_of(device, text.data(), text.size()) == kSuccess) gpu.name = text.data();
      if (uuid_of != nullptr && uuid_of(device, text.data(), text.size()) == kSuccess) gpu.uuid = text.data();
      Memory memory = {};
      if (memory_of != nullptr && memory_of(device, &memory) == kSuccess) gpu.memory_bytes = memory.total;
      PciInfo pci = {};
      if (pci_of != nullptr && pci_of(device, &pci) == kSuccess) gpu.pci_address = sysfs_address(pci);
    }
    inventory.gpus.push_back(std::move(gpu));
  }
  return inventory;
}

GpuInventory ask_inventory(Library library) {
  return inventory_of(Nvml(std::move(library)));
}

}  // namespace

GpuInventory query_nvml() {
  if (auto inventory = ask_in_time(ask_inventory)) return *std::move(inventory);
  GpuInventory devices = count_devices();
  log::write(log::Level::warn,
             fmt::format("the NVIDIA driver does not answer (NVML); by /dev there {} {}",
                         devices.gpus.size() == 1 ? "is" : "are", pluralize(devices.gpus.size(), "GPU")));
  return devices;
}

namespace {

// nvmlClocksThrottleReason*, those of the hardware; HW slowdown is set together with its reason.
std::vector<std::string> slowdowns_in(unsigned long long reasons) {
  constexpr unsigned long long kHwSlowdown = 0x8;
  constexpr unsigned long long kHwThermal = 0x40;
  constexpr unsigned long long kHwPowerBrake = 0x80;
  std::vector<std::string> causes;
  if ((reasons & kHwThermal) != 0) causes.emplace_back("heat");
  if ((reasons & kHwPowerBrake) != 0) causes.emplace_back("power brake");
  if (causes.empty() && (reasons & kHwSlowdown) != 0) causes.emplace_back("hardware slowdown");
  return causes;
}

GpuHealth query_health(const Nvml& nvml, const Gpu& gpu) {
  constexpr int kUncorrected = 1;  // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
  constexpr int kSinceLoad = 0;    // NVML_VOLATILE_ECC
  GpuHealth health{.gpu = gpu};
  const Device device = nvml.device(static_cast<unsigned>(gpu.index));
  health.lost = device == nullptr;
  if (health.lost) return health;
  Memory memory = {};
  auto* memory_of = nvml.find<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo");
  if (memory_of != nullptr && memory_of(device, &memory) == kSuccess) health.free_bytes = memory.free;
  unsigned long long number = 0;
  auto* errors_of = nvml.find<int(Device, int, int, unsigned long long*)>("nvmlDeviceGetTotalEccErrors");
  if (errors_of != nullptr && errors_of(device, kUncorrected, kSinceLoad, &number) == kSuccess)
    health.uncorrected_errors = number;
  auto* reasons_of = nvml.find<int(Device, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
  if (reasons_of != nullptr && reasons_of(device, &number) == kSuccess)
    health.slowdowns = slowdowns_in(number);
  // Ampere and later remap rows; older GPUs retire pages.
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  auto* rows_of =
      nvml.find<int(Device, unsigned*, unsigned*, unsigned*, unsigned*)>("nvmlDeviceGetRemappedRows");
  if (rows_of != nullptr && rows_of(device, &corrected, &uncorrected, &pending, &failed) == kSuccess) {
    health.needs_reset = pending != 0;
    health.needs_repair = failed != 0;
    return health;
  }
  auto* pages_of = nvml.find<int(Device, unsigned*)>("nvmlDeviceGetRetiredPagesPendingStatus");
  if (pages_of != nullptr && pages_of(device, &pending) == kSuccess) health.needs_reset = pending != 0;
  return health;
}

}  // namespace

GpuHealthReport query_gpu_health() {
  const Nvml nvml(load_library());
  const GpuInventory inventory = inventory_of(nvml);
  GpuHealthReport report{.driver_version = inventory.driver_version};
  for (const Gpu& gpu : inventory.gpus) report.gpus.push_back(query_health(nvml, gpu));
  return report;
}

namespace {

// The answer of a query about one device; absent where this driver has none.
template <typename Value>
std::optional<Value> value_of(const Nvml& nvml, Device device, const char* query) {
  auto* ask = nvml.find<int(Device, Value*)>(query);
  Value value = {};
  return ask != nullptr && ask(device, &value) == kSuccess ? std::optional(value) : std::nullopt;
}

// Absent: the driver cannot list them.
std::optional<std::vector<ProcessInfo>> processes_on(const Nvml& nvml, Device device) {
  using List = int(Device, unsigned*, ProcessInfo*);
  auto* list_of = nvml.find<List>("nvmlDeviceGetComputeRunningProcesses_v3");
  // Of older drivers; the structure is the same.
  if (list_of == nullptr) list_of = nvml.find<List>("nvmlDeviceGetComputeRunningProcesses_v2");
  constexpr unsigned kMaxProcesses = 256;
  std::vector<ProcessInfo> processes(kMaxProcesses);
  unsigned count = kMaxProcesses;
  if (list_of == nullptr || list_of(device, &count, processes.data()) != kSuccess) return std::nullopt;
  processes.resize(count);
  return processes;
}

std::string uuid_of(const Nvml& nvml, Device device) {
  auto* ask = nvml.find<int(Device, char*, unsigned)>("nvmlDeviceGetUUID");
  std::array<char, 96> text = {};  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
  return ask != nullptr && ask(device, text.data(), text.size() - 1) == kSuccess ? text.data() : "";
}

std::optional<int> utilization_of(const Nvml& nvml, Device device) {
  const auto use = value_of<Utilization>(nvml, device, "nvmlDeviceGetUtilizationRates");
  return use ? std::optional(static_cast<int>(use->gpu)) : std::nullopt;
}

// NVML counts in thousandths of watts and joules.
template <typename Count>
std::optional<double> thousandths(const std::optional<Count>& count) {
  return count ? std::optional(static_cast<double>(*count) / 1000) : std::nullopt;
}

std::optional<double> watts_of(const Nvml& nvml, Device device) {
  return thousandths(value_of<unsigned>(nvml, device, "nvmlDeviceGetPowerUsage"));
}

std::vector<GpuProcess> ask_processes(Library library) {
  std::vector<GpuProcess> processes;
  const Nvml nvml(std::move(library));
  if (!nvml) return processes;
  for (unsigned i = 0; i < nvml.count(); ++i) {
    const Device device = nvml.device(i);
    if (device == nullptr) continue;
    const auto listed = processes_on(nvml, device);
    if (!listed || listed->empty()) continue;
    const auto percent = utilization_of(nvml, device);
    const auto watts = watts_of(nvml, device);
    for (const ProcessInfo& process : *listed)
      processes.push_back({.gpu = static_cast<int>(i),
                           .pid = static_cast<pid_t>(process.pid),
                           .memory_bytes = process.used_memory == kNotTold ? 0 : process.used_memory,
                           .gpu_use = percent,
                           .gpu_watts = watts});
  }
  return processes;
}

}  // namespace

std::optional<std::vector<GpuUse>> query_gpu_use() {
  std::vector<GpuUse> uses;
  Library library = load_library();
  if (library == nullptr) return uses;
  const Nvml nvml(std::move(library));
  if (!nvml) return std::nullopt;
  for (unsigned i = 0; i < nvml.count(); ++i) {
    const Device device = nvml.device(i);
    if (device == nullptr) continue;
    GpuUse& use = uses.emplace_back(GpuUse{.index = static_cast<int>(i)});
    use.percent = utilization_of(nvml, device);
    if (const auto memory = value_of<Memory>(nvml, device, "nvmlDeviceGetMemoryInfo"))
      use.memory_bytes = memory->used;
    use.watts = watts_of(nvml, device);
    use.joules =
        thousandths(value_of<unsigned long long>(nvml, device, "nvmlDeviceGetTotalEnergyConsumption"));
    use.uuid = uuid_of(nvml, device);
    const auto listed = processes_on(nvml, device);
    if (listed) use.processes.emplace();
    for (const ProcessInfo& process : listed.value_or(std::vector<ProcessInfo>()))
      use.processes->push_back(static_cast<pid_t>(process.pid));
  }
  return uses;
}

std::vector<GpuProcess> query_gpu_processes() {
  return ask_in_time(ask_processes).value_or(std::vector<GpuProcess>());
}

}  // namespace acc
