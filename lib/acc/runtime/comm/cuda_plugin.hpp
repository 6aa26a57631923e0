// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>

#include "acc/runtime/comm/out_of_memory.hpp"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace acc::detail {

/// How many bytes are in use, and how many were at most.
struct MemoryUse {
  std::int64_t bytes = 0;
  std::int64_t peak = 0;
};

/// The functions of libacc_cuda.so, which links LibTorch's CUDA libraries and is loaded by libacc.so at run
/// time.
struct CudaTable {
  /// The version of LibTorch with which it was compiled.
  const char* torch_version = "";

  /// The number of devices that this process may use. If it is 0, `reason` is set to LibTorch's reason. The
  /// first call initializes the driver.
  int (*count_devices)(std::string& reason) = nullptr;

  /// Sets this thread's device. From then on allocations that fail are watched.
  void (*set_device)(c10::DeviceIndex device) = nullptr;

  /// The last allocation of this process that failed; absent before the first.
  std::optional<OutOfMemory> (*last_out_of_memory)() = nullptr;

  /// Waits until the device has finished all its work.
  void (*synchronize)(c10::DeviceIndex device) = nullptr;

  /// Returns unused memory to the driver.
  void (*empty_cache)() = nullptr;

  /// Connects this process, which uses `device`, to all others through NCCL; the processes find each other
  /// through `store`.
  c10::intrusive_ptr<c10d::Backend> (*make_nccl_backend)(const c10::intrusive_ptr<c10d::Store>& store,
                                                         int rank, int size,
                                                         std::chrono::milliseconds timeout,
                                                         c10::Device device) = nullptr;

  /// The memory of this process's tensors on the device; the peak is that since the last reset.
  MemoryUse (*allocated_memory)(c10::DeviceIndex device) = nullptr;
  void (*reset_peak_memory)(c10::DeviceIndex device) = nullptr;
};

/// The one function that libacc_cuda.so exports, by this name.
inline constexpr const char* kCudaTableFunction = "acc_cuda_table";
using CudaTableFunction = const CudaTable* (*)();

/// The CUDA plug-in of this process, or the reason why it could not be loaded: empty if loading was not
/// requested.
using CudaPlugin = std::variant<const CudaTable*, std::string>;

/// Loads a plug-in; it stays loaded until the process ends. Fails if it was compiled with another LibTorch
/// than this library.
CudaPlugin load_cuda_plugin(const std::filesystem::path& file);

/// Loads the plug-in from libacc.so's folder and sets it as that of this process.
void use_cuda_plugin_beside_library();

/// The plug-in that was loaded together with libacc.so, if may_load_cuda was true (on_load.cpp).
const CudaPlugin& cuda_plugin();

/// The loaded plug-in. To be called only if one is loaded, as when a CUDA device is in use.
const CudaTable& cuda_table();

/// The number of devices that this process may use. If there are none, the reason: empty if CUDA was not
/// requested.
struct CudaDevices {
  int count = 0;
  std::string why_none = {};
};

/// Queries the plug-in; the first call initializes the driver.
CudaDevices find_cuda_devices(const CudaPlugin& plugin);

}  // namespace acc::detail
