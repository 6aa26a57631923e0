// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD: the wall clock is SHIFTED_CLOCK seconds ahead. With SHIFTED_CLOCK_PERIOD it goes
// ahead and back again, each time for so many seconds, in all processes at the same moments.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace {

int number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

bool is_ahead(int period) {
  timespec now = {};
  return period == 0 ||
         (::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == 0 && now.tv_sec / period % 2 == 1);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static const int by = number("SHIFTED_CLOCK");
  static const int period = number("SHIFTED_CLOCK_PERIOD");
  const long result = ::syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && clock == CLOCK_REALTIME && is_ahead(period)) now->tv_sec += by;
  return static_cast<int>(result);
}
