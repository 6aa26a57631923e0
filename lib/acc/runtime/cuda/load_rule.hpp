// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/base/environment.hpp"

namespace acc {

/// What on a machine speaks for NVIDIA's driver; either is enough.
struct DriverSigns {
  /// /proc/driver/nvidia is there.
  bool kernel_module = false;
  /// The dynamic linker finds libcuda.so.1, as under WSL, which has no such folder.
  bool library = false;
};

/// Asks this machine. Initializes nothing.
DriverSigns look_for_cuda_driver();

/// Whether loading libacc.so loads CUDA's half of LibTorch, too, which costs 0.15 s and 350 MiB: where a
/// driver is there, unless ACCELERATE_USE_CPU asks for the CPU, CUDA_VISIBLE_DEVICES hides all
/// devices, or ACC_LOAD_CUDA says no.
bool may_load_cuda(const Environment& environment, const DriverSigns& driver);

}  // namespace acc
