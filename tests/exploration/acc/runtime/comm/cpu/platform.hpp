// SPDX-License-Identifier: Apache-2.0
// In place of the header of this path in lib/: each call is a point at which another rank may go on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "acc/base/files.hpp"
#include "exploration/execution.hpp"

namespace acc::detail::platform {

using exploration::Execution;

// Few and small, so that all of them are in use at once. Three ranks reduce a line of 64 bytes each.
inline constexpr std::size_t kChunkBytes = 192;
inline constexpr std::size_t kSlots = 2;
inline constexpr std::size_t kReduceInPartsFrom = 320;
inline constexpr int kMaxSpins = 1;
inline constexpr int kYields = 0;

template <class T>
class Atomic {
 public:
  Atomic() = default;

  operator T() const { return load(); }
  T operator=(T value) {
    store(value);
    return value;
  }

  T load(std::memory_order order = std::memory_order_seq_cst) const {
    if (!Execution::is_running()) return value_;
    Execution::current().shared_point();
    return static_cast<T>(
        Execution::current().load(this, static_cast<Execution::Value>(value_), order_of(order)));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    if (!Execution::is_running()) {
      value_ = value;
      return;
    }
    Execution::current().store(this, static_cast<Execution::Value>(value), order_of(order),
                               [](void* word, Execution::Value stored) {
                                 static_cast<Atomic*>(word)->value_ = static_cast<T>(stored);
                               });
  }
  T exchange(T value) {
    return update([value](T) { return value; });
  }
  T operator++() {
    return update([](T before) { return before + 1; }) + 1;
  }

 private:
  static Execution::Order order_of(std::memory_order order) {
    if (order == std::memory_order_seq_cst) return Execution::Order::sequential;
    return order == std::memory_order_relaxed ? Execution::Order::relaxed
                                              : Execution::Order::release_or_acquire;
  }

  template <class Change>
  T update(Change change) {
    Execution& execution = Execution::current();
    execution.before_update(this);
    const T before = std::exchange(value_, change(value_));
    execution.after_update(this, static_cast<Execution::Value>(before),
                           static_cast<Execution::Value>(value_));
    return before;
  }

  T value_;
};

template <class T>
class Published {
 public:
  operator T() const {
    Execution::current().read(this, sizeof *this);
    return value_;
  }
  Published& operator=(T value) {
    Execution::current().write(this, sizeof *this);
    value_ = value;
    return *this;
  }

 private:
  T value_;
};

/// The memory of all ranks, in the place of what the kernel would map.
std::byte* exchange_memory();

inline void* map(const Descriptor& /*memory*/, std::size_t /*bytes*/) {
  return exchange_memory();
}
inline void unmap(void* /*mapped*/, std::size_t /*bytes*/) {}

struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;

  static time_point now() { return time_point(Execution::current().now()); }
};

class Mutex {
 public:
  void lock() {
    Execution& execution = Execution::current();
    execution.own_point();
    while (is_locked_) execution.block("a lock", this, exploration::kNever);
    is_locked_ = true;
    execution.acquire(clock_);
  }
  void unlock() {
    Execution& execution = Execution::current();
    execution.release(clock_);
    is_locked_ = false;
    execution.wake(this, /*all=*/true);
  }

 private:
  bool is_locked_ = false;
  exploration::VectorClock clock_ = {};
};

class Condition {
 public:
  void wait(std::unique_lock<Mutex>& lock) { wait_until(lock, Clock::time_point::max()); }
  void wait_until(std::unique_lock<Mutex>& lock, Clock::time_point deadline) {
    lock.unlock();
    Execution::current().block("a condition", this, deadline.time_since_epoch());
    lock.lock();
  }
  void notify_all() { Execution::current().wake(this, /*all=*/true); }
};

class Thread {
 public:
  Thread() = default;
  explicit Thread(std::function<void()> body) {
    Execution& execution = Execution::current();
    const int rank = execution.current_rank();
    fiber_ = execution.start(rank, std::to_string(rank) + "t", std::move(body));
  }
  int get_id() const { return fiber_; }
  void join() { Execution::current().join(fiber_); }

 private:
  int fiber_ = -2;
};

inline int own_thread() {
  return Execution::current().current_fiber();
}

class Timer {
 public:
  void set(std::chrono::nanoseconds after) {
    Execution& execution = Execution::current();
    execution.release(clock_);
    expires_ = execution.now() + after;
    execution.rearm(this, expires_);
  }
  void wait() {
    Execution& execution = Execution::current();
    if (expires_ > execution.now()) execution.block("its timer", this, expires_);
    expires_ = exploration::kNever;
    execution.acquire(clock_);
  }

 private:
  exploration::Time expires_ = exploration::kNever;
  exploration::VectorClock clock_ = {};
};

struct Process {
  int rank = 0;
};

inline bool has_ended(const Process& process) {
  return Execution::current().has_ended(process.rank);
}

inline void fence() {
  Execution::current().fence();
}

inline void copy(void* to, const void* from, std::size_t bytes) {
  Execution::current().read(from, bytes);
  Execution::current().write(to, bytes);
  std::memcpy(to, from, bytes);
}

inline void relax() {
  Execution::current().shared_point();
}
inline void yield() {
  Execution::current().shared_point();
}

inline void futex_wait(const Atomic<std::uint32_t>& word, std::uint32_t value,
                       std::chrono::nanoseconds max_time) {
  // The kernel compares and falls asleep in one step.
  Execution::current().enter_kernel();
  if (word.load(std::memory_order_relaxed) == value) Execution::current().sleep(&word, max_time);
}
inline void futex_wake(const Atomic<std::uint32_t>& word) {
  Execution::current().wake_sleeper(&word);
}

}  // namespace acc::detail::platform
