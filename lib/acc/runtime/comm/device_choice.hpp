// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include "acc/base/environment.hpp"
#include "acc/base/worker_env.hpp"

namespace acc::detail {

/// Signs that NVIDIA's driver is installed; either is sufficient.
struct DriverSigns {
  /// /proc/driver/nvidia exists.
  bool kernel_module = false;
  /// The dynamic linker finds libcuda.so.1. Under WSL only this is true.
  bool library = false;
};

/// Looks for the signs without initializing the driver.
DriverSigns find_cuda_driver();

/// Whether loading libacc.so should also load LibTorch's CUDA libraries, which takes 0.15 s and 350 MiB: if
/// there is a driver, unless ACCELERATE_USE_CPU is true, ACC_LOAD_CUDA is false, or CUDA_VISIBLE_DEVICES
/// hides all devices.
bool may_load_cuda(const Environment& environment, const DriverSigns& driver);

/// Whether this process must use the CPU, by the program's option or ACCELERATE_USE_CPU.
bool must_use_cpu(bool option, const Environment& environment);

/// The device of a process that sees `cuda_devices` CUDA devices: the one of its local rank, or the CPU if
/// there are none. If there are more processes than devices, processes share devices round-robin if
/// `may_share`; otherwise Error{usage} is thrown.
c10::Device choose_device(const WorkerEnv& worker, int cuda_devices, bool may_share = false);

/// Chooses the device of this process and makes it CUDA's current device. If there is a driver but no usable
/// device, the CPU is used, and the first process of each machine reports the reason through LibTorch's
/// warning handler.
c10::Device claim_device(const WorkerEnv& worker, bool cpu, bool may_share = false);

}  // namespace acc::detail
