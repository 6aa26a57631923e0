// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "acc/base/error.hpp"

namespace acc::detail {

/// The memory of a device, in bytes, when an allocation failed.
struct OutOfMemory {
  c10::DeviceIndex device = 0;
  std::uint64_t requested = 0;           ///< By the allocation.
  std::uint64_t free = 0;                ///< On the device, whoever uses the rest.
  std::uint64_t total = 0;               ///< Of the device, or of what this process may use of it.
  std::uint64_t allocated = 0;           ///< By this process's tensors.
  std::uint64_t reserved = 0;            ///< By LibTorch's allocator: for tensors, and free for later ones.
  std::uint64_t largest_free_block = 0;  ///< Of those that the allocator holds.
};

/// The Error{system} that says so in a line, and what to do.
Error explain_out_of_memory(const OutOfMemory& failure);

}  // namespace acc::detail
