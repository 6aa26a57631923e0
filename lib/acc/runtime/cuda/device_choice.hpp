// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include "acc/base/environment.hpp"
#include "acc/base/worker_env.hpp"

namespace acc::detail {

/// Signs of NVIDIA's driver on this machine; either is enough.
struct DriverSigns {
  /// /proc/driver/nvidia is there.
  bool kernel_module = false;
  /// The dynamic linker finds libcuda.so.1, as under WSL, which has no such folder.
  bool library = false;
};

/// Looks for them without initializing the driver.
DriverSigns look_for_cuda_driver();

/// Whether loading libacc.so loads CUDA's half of LibTorch, too, which costs 0.15 s and 350 MiB: where there
/// is a driver, unless ACCELERATE_USE_CPU asks for the CPU, CUDA_VISIBLE_DEVICES hides all devices, or
/// ACC_LOAD_CUDA says no.
bool may_load_cuda(const Environment& environment, const DriverSigns& driver);

/// Whether this process must stay on the CPU: the program asks for it, or ACCELERATE_USE_CPU does.
bool cpu_is_asked_for(bool option, const Environment& environment);

/// The device of a process where `cuda_devices` may be used: one for each process of a machine, by its local
/// rank, or the CPU where there are none. Where processes may share devices they take them in turn; else
/// Error{usage} is thrown when there are more processes than devices.
c10::Device choose_device(const WorkerEnv& worker, int cuda_devices, bool may_share = false);

/// Finds the device of this process and makes it CUDA's current one. Where there is a driver but no usable
/// device, the first process of each machine warns with the reason through LibTorch's warning handler, and
/// the CPU is used.
c10::Device claim_device(const WorkerEnv& worker, bool cpu, bool may_share = false);

}  // namespace acc::detail
