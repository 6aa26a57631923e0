// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace acc {

/// An NVIDIA GPU, as reported by NVML.
struct Gpu {
  int index = 0;
  std::string name = {};
  std::string uuid = {};
  std::uint64_t memory_bytes = 0;
  /// In the format of sysfs, `0000:1b:00.0`; empty if NVML does not report it.
  std::string pci_address = {};

  bool operator==(const Gpu&) const = default;
};

/// The answer of NVML.
struct GpuInventory {
  std::vector<Gpu> gpus = {};
  /// Empty if there is no driver.
  std::string driver_version = {};
};

/// Loads `libnvidia-ml.so.1` from the library path for the duration of the call. Without driver, library or
/// permission the answer is empty; never throws.
GpuInventory query_nvml();

/// Faults and load of a GPU. What the driver does not report is absent.
struct GpuHealth {
  Gpu gpu = {};
  /// The driver knows the GPU but cannot reach it.
  bool lost = false;
  std::optional<std::uint64_t> free_bytes = {};
  /// Memory errors that ECC could not correct, since the driver was loaded.
  std::optional<std::uint64_t> uncorrected_errors = {};
  /// Pages or rows of memory with errors wait for a reset of the GPU to be replaced.
  bool needs_reset = false;
  /// No row is left to replace one with errors.
  bool needs_repair = false;
  /// Reasons of the hardware to lower the clocks: `heat`, `power brake`, `hardware slowdown`.
  std::vector<std::string> slowdowns = {};

  bool operator==(const GpuHealth&) const = default;
};

/// What query_nvml() reports, with the health of each GPU. A driver that was not loaded takes seconds for
/// each, and one that is broken may block for ever.
struct GpuHealthReport {
  std::vector<GpuHealth> gpus = {};
  std::string driver_version = {};
};
GpuHealthReport query_gpu_health();

/// What all processes use of a GPU at one moment. What the driver does not report is absent.
struct GpuUse {
  int index = 0;
  /// Utilization, in percent.
  std::optional<int> percent = {};
  std::optional<std::uint64_t> memory_bytes = {};
  /// The power it draws, and the energy it has used since the driver was loaded.
  std::optional<double> watts = {};
  std::optional<double> joules = {};
  std::string uuid = {};
  /// Processes that hold a context on it; in a container the driver may show none. Absent: it cannot list
  /// them.
  std::optional<std::vector<pid_t>> processes = {};

  bool operator==(const GpuUse&) const = default;
};

/// Every GPU that the driver shows; none without its library. Absent: the driver fails. May block for ever.
std::optional<std::vector<GpuUse>> query_gpu_use();

/// A process that holds a context on a GPU.
struct GpuProcess {
  int gpu = 0;
  pid_t pid = 0;
  /// 0 if the driver does not report it.
  std::uint64_t memory_bytes = 0;
  /// Utilization of the whole GPU, by all processes, in percent.
  std::optional<int> gpu_use = {};
  /// The power that the whole GPU draws.
  std::optional<double> gpu_watts = {};

  bool operator==(const GpuProcess&) const = default;
};

/// Every process on a GPU of this machine, as far as the driver shows them; in a container it may show none.
/// Empty on failure, as query_nvml().
std::vector<GpuProcess> query_gpu_processes();

}  // namespace acc
