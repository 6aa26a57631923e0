// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "acc/base/blocked_signals.hpp"

namespace acc {

/// Starts a thread that leaves signals to the others of the program. Throws std::system_error if it cannot.
inline std::thread start_thread(std::function<void()> work) {
  const BlockedSignals blocked;
  return std::thread(std::move(work));
}

/// Does work that may block for ever in a thread that nobody waits for, not even the end of the process. The
/// work owns what it uses. Throws std::system_error if there is no thread.
inline void start_detached(std::function<void()> work) {
  start_thread(std::move(work)).detach();
}

}  // namespace acc
