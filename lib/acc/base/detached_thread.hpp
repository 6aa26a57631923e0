// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "acc/base/blocked_signals.hpp"

namespace acc {

/// Does work that may block for ever in a thread that nobody waits for, not even the end of the process. The
/// work owns what it uses. Signals are left to the program's other threads.
/// Throws std::system_error if there is no thread.
inline void start_detached(std::function<void()> work) {
  const BlockedSignals blocked;
  std::thread(std::move(work)).detach();
}

}  // namespace acc
