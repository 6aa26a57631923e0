// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/stop_request.hpp"

#include <signal.h>

#include <atomic>

namespace acc::detail {
namespace {

std::atomic<bool> requested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "is written by a signal handler");

void note(int signal, bool also_ignored) {
  struct sigaction before = {};
  ::sigaction(signal, nullptr, &before);
  const bool is_free = (before.sa_flags & SA_SIGINFO) == 0 &&
                       (before.sa_handler == SIG_DFL || (also_ignored && before.sa_handler == SIG_IGN));
  if (!is_free) return;
  struct sigaction handler = {};
  handler.sa_handler = [](int) { requested = true; };
  handler.sa_flags = SA_RESTART;  // the program's own system calls go on
  ::sigaction(signal, &handler, nullptr);
}

}  // namespace

void note_stop_signals() {
  note(SIGTERM, false);
  note(SIGUSR1, true);
  note(SIGUSR2, true);
}

bool stop_was_requested() {
  return requested;
}

}  // namespace acc::detail
