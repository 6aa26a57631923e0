// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>

namespace acc::detail {

/// Destroys an object that joins its own thread, for std::shared_ptr and std::unique_ptr. Where a callback on
/// that thread drops the last reference, another thread does it.
template <class T>
struct OffThreadDelete {
  void operator()(T* object) const {
    if (object->is_own_thread()) {
      std::thread([object] { delete object; }).detach();
    } else {
      delete object;
    }
  }
};

}  // namespace acc::detail
