// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace acc::test {

/// The calling thread takes a while to end after its function has returned, and says so at its end.
inline void end_slowly(std::atomic<bool>& ended) {
  struct End {
    std::atomic<bool>* ended = nullptr;
    ~End() {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      *ended = true;
    }
  };
  thread_local End end;
  end.ended = &ended;
}

}  // namespace acc::test
