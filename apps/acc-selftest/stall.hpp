// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>

namespace acc::selftest {

/// Where a rank of this machine stands.
struct Standing {
  int rank = 0;
  /// 0: it has not begun.
  pid_t pid = 0;
  int step = 0;
  /// As /proc/PID/stat tells it: R, S, T (stopped), ...; 0: there is no such process.
  char state = 0;
};

/// The state of a process, see Standing.
char process_state(pid_t pid);

/// Which ranks keep the others of a job of `num_processes` waiting, and why: those that have not begun, are
/// gone or stopped, or are some steps behind. Where none of this machine is missing, what else it may be.
std::string explain_stall(std::span<const Standing> ranks, int num_processes);

/// Calls `expired` from a thread of its own when restart() was not called for `limit`.
class Watchdog {
 public:
  Watchdog(std::chrono::milliseconds limit, std::function<void()> expired);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The time begins anew.
  void restart();

 private:
  void watch();

  std::chrono::milliseconds limit_;
  std::function<void()> expired_;
  std::mutex mutex_ = {};
  std::condition_variable changed_ = {};
  std::chrono::steady_clock::time_point deadline_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace acc::selftest
