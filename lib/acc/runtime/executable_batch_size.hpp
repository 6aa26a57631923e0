// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>

namespace acc {

/// Whether the exception says that memory ran out, the device's or the machine's.
bool is_out_of_memory(const std::exception& error);

/// Throws Error{system}: not even a batch of one fits.
[[noreturn]] void refuse_batch_size();

/// Calls `train(batch_size)` and gives back what it gives. When memory runs out it is called again with nine
/// tenths of the batch size, as accelerate's find_executable_batch_size; what `train` made is gone by then.
/// Other exceptions pass through. Throws Error{system} when nothing is left to try.
template <class Train>
auto find_executable_batch_size(Train train, std::size_t starting_batch_size = 128) {
  for (std::size_t size = starting_batch_size; size > 0; size = size * 9 / 10) {
    try {
      return train(size);
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
    }
  }
  refuse_batch_size();
}

}  // namespace acc
