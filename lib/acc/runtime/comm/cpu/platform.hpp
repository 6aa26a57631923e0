// SPDX-License-Identifier: Apache-2.0
// All by which the ranks of a machine wait for each other, and the sizes of what they exchange. Segment and
// MemoryGroup use nothing else for that: tests/exploration compiles them with a header of the same path,
// which decides at each of these calls which rank goes on.
#pragma once

#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "acc/base/files.hpp"

namespace acc::detail::platform {

/// Bytes of a slot; more than that travels in several chunks.
inline constexpr std::size_t kChunkBytes = 128U << 10U;
/// How many chunks a rank can be ahead of the slowest one.
inline constexpr std::size_t kSlots = 8;
/// From this size on, more than two ranks reduce a part each instead of everything.
inline constexpr std::size_t kReduceInPartsFrom = 32U << 10U;
/// How long a rank with a core of its own spins, and how often any rank yields, before it sleeps.
inline constexpr int kMaxSpins = 400;
inline constexpr int kYields = 4;

/// In memory that processes share.
template <class T>
using Atomic = std::atomic<T>;

/// In memory that processes share: written before an Atomic says that it may be read.
template <class T>
using Published = T;

using Clock = std::chrono::steady_clock;
using Mutex = std::mutex;
using Condition = std::condition_variable;
using Thread = std::thread;
using Process = Descriptor;  ///< A pidfd.

inline std::thread::id own_thread() {
  return std::this_thread::get_id();
}

inline void fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// Copies from or to memory that processes share.
inline void copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

inline void* map(const Descriptor& memory, std::size_t bytes) {
  return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
}

inline void unmap(void* mapped, std::size_t bytes) {
  ::munmap(mapped, bytes);
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline void yield() {
  std::this_thread::yield();
}

inline timespec timespec_of(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
}

/// Sleeps for `max_time`, until a futex_wake, or not at all if the word has another value.
inline void futex_wait(const Atomic<std::uint32_t>& word, std::uint32_t value,
                       std::chrono::nanoseconds max_time) {
  const timespec time = timespec_of(max_time);
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

inline void futex_wake(const Atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

inline bool has_ended(const Process& process) {
  pollfd ended = {.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, 0) > 0;
}

/// Wakes the thread that waits for it, at the time that was set last.
class Timer {
 public:
  /// Throws std::system_error.
  Timer() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
    if (!timer_) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  }

  void set(std::chrono::nanoseconds after) {
    const itimerspec time = {.it_interval = {}, .it_value = timespec_of(after)};
    ::timerfd_settime(timer_.get(), 0, &time, nullptr);
  }

  void wait() {
    std::uint64_t expirations = 0;
    while (::read(timer_.get(), &expirations, sizeof expirations) < 0 && errno == EINTR) {
    }
  }

 private:
  Descriptor timer_;
};

}  // namespace acc::detail::platform
