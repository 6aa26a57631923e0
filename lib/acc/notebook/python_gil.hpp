// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace acc::detail {

/// Releases Python's global interpreter lock while it lives, if this thread holds it: a Jupyter kernel shows
/// what workers print only while its other threads run. Does nothing in a process without Python.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  void (*restore_)(void*) = nullptr;
  void* thread_state_ = nullptr;
};

}  // namespace acc::detail
