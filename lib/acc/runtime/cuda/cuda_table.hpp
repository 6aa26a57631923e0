// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace acc {

/// What libacc_cuda.so does for libacc.so, which is not linked to it: that one links CUDA's half of LibTorch.
struct CudaTable {
  /// The LibTorch that it was compiled with.
  const char* torch_version = "";

  /// How many devices this process may use. Where there is none, `why` says so in LibTorch's words. The first
  /// call initializes the driver.
  int (*count_devices)(std::string& why) = nullptr;

  /// This thread's device.
  void (*set_device)(c10::DeviceIndex device) = nullptr;

  /// Returns when everything that was given to the device is done.
  void (*synchronize)(c10::DeviceIndex device) = nullptr;

  /// Gives memory that no tensor uses back to the driver.
  void (*empty_cache)() = nullptr;

  /// Connects this process, which computes on `device`, to all others through NCCL; they find each other
  /// through `store`.
  c10::intrusive_ptr<c10d::Backend> (*make_nccl_backend)(const c10::intrusive_ptr<c10d::Store>& store,
                                                         int rank, int size,
                                                         std::chrono::milliseconds timeout,
                                                         c10::Device device) = nullptr;
};

/// The one function that libacc_cuda.so exports, by this name.
inline constexpr const char* kCudaTableFunction = "acc_cuda_table";
using CudaTableFunction = const CudaTable* (*)();

}  // namespace acc
