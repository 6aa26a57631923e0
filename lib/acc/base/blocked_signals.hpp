// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace acc {

/// While it lives the calling thread gets no signal, and what it starts begins with all of them blocked: a
/// thread that leaves the program's handlers to the program's own threads, or a child that has yet to reset
/// them.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_ = {};
};

}  // namespace acc
