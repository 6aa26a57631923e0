// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <set>
#include <vector>

namespace acc {

inline sigset_t signal_set_of(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

/// Those of `signals` that this process ignores.
inline std::set<int> ignored_of(const std::set<int>& signals) {
  std::set<int> ignored;
  for (const int signal : signals) {
    struct sigaction now = {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) ignored.insert(signal);
  }
  return ignored;
}

/// Blocks some signals in the calling thread for the lifetime of the object. Threads and children that are
/// started meanwhile inherit the mask: for a thread that leaves signal handlers to the program's own threads,
/// a child that has yet to reset them, or a process that reads its signals from a descriptor.
class BlockedSignals {
 public:
  explicit BlockedSignals(const sigset_t& signals = all()) { pthread_sigmask(SIG_BLOCK, &signals, &before_); }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  static sigset_t all() {
    sigset_t set;
    sigfillset(&set);
    return set;
  }

  sigset_t before_ = {};
};

}  // namespace acc
