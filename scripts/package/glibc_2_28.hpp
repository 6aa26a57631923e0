// SPDX-License-Identifier: Apache-2.0
// What glibc 2.28 does not have yet: close_range, which Boost.Process expects beside new headers of the
// kernel, and sigabbrev_np.
#pragma once

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range __NR_close_range
#endif

inline int close_range(unsigned first, unsigned last, int flags) {
  return static_cast<int>(::syscall(SYS_close_range, first, last, flags));
}

extern "C" const char* const sys_sigabbrev[];  // removed from the headers of glibc 2.32 for sigabbrev_np

extern "C" inline const char* sigabbrev_np(int signal) noexcept {
  constexpr int kEnd = 65;
  return signal >= 0 && signal < kEnd ? sys_sigabbrev[signal] : nullptr;
}
