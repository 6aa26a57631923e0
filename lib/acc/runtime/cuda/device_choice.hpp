// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include "acc/base/environment.hpp"
#include "acc/base/worker_env.hpp"

namespace acc {

/// Whether this process must stay on the CPU: the program asks for it, or ACCELERATE_USE_CPU does.
bool cpu_is_asked_for(bool option, const Environment& environment);

/// The device of a process where `cuda_devices` may be used: one for each process of a machine, by its local
/// rank, or the CPU where there are none. Where processes may share devices they take them in turn; else
/// Error{usage} is thrown when there are more processes than devices.
c10::Device choose_device(const WorkerEnv& worker, int cuda_devices, bool may_share = false);

/// Finds the device of this process and makes it CUDA's current one. Where a driver is there but no device
/// can be used, LibTorch's warning handler hears why from the first process of each machine, and it is the
/// CPU.
c10::Device claim_device(const WorkerEnv& worker, bool cpu, bool may_share = false);

}  // namespace acc
