// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>

#include "acc/base/environment.hpp"

namespace acc {

namespace detail {

/// Makes malloc keep the memory that tensors free instead of returning it to the kernel. Every training step
/// allocates the same sizes again, and getting them from the kernel would take a tenth of the step. In
/// return, the process does not become smaller. An Accelerator's constructor calls it if
/// may_keep_freed_memory.
void keep_freed_memory();

/// False if environment variables tune malloc.
bool may_keep_freed_memory(const Environment& environment);

/// Throws the Error{system} that not even a batch of one fits.
[[noreturn]] void refuse_batch_size();

}  // namespace detail

/// Whether the exception reports that a device or the machine is out of memory.
bool is_out_of_memory(const std::exception& error);

/// Calls `train(batch_size)` and returns its result. If memory runs out, calls it again with nine tenths of
/// the batch size, as accelerate's find_executable_batch_size; the local objects of `train` are destroyed
/// before. Other exceptions pass through. Throws Error{system} when even a batch of one does not fit.
template <class Train>
auto find_executable_batch_size(Train train, std::size_t starting_batch_size = 128) {
  for (std::size_t size = starting_batch_size; size > 0; size = size * 9 / 10) {
    try {
      return train(size);
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
    }
  }
  detail::refuse_batch_size();
}

}  // namespace acc
