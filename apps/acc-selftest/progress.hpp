// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace acc::selftest {

/// The progress of each rank of this machine, in shared memory, so that it works without a network.
class ProgressBoard {
 public:
  /// The process of a rank, 0 if it has not begun, and the step that it has reached.
  struct Progress {
    pid_t pid = 0;
    int step = 0;
  };

  /// Shares `file`, which `acc test` created, between `ranks` processes. If the file is missing, as for ranks
  /// on other machines, nothing is shared.
  ProgressBoard(const std::filesystem::path& file, int ranks);
  ~ProgressBoard();
  ProgressBoard(const ProgressBoard&) = delete;
  ProgressBoard& operator=(const ProgressBoard&) = delete;

  bool shared() const { return mapped_ != nullptr; }

  /// Records that the calling process, which has this local rank, has reached `step`.
  void set_step(int local_rank, int step);

  /// The progress by local rank; empty if the board is not shared.
  std::vector<Progress> progress() const;

  /// Returns true to exactly one process, which reports how the test failed.
  bool claim_report();

 private:
  std::span<std::int32_t> words_ = {};
  void* mapped_ = nullptr;
  std::int32_t own_claim_ = 0;
};

/// The progress of a rank of this machine and the state of its process.
struct RankProgress {
  int rank = 0;
  /// 0 if it has not begun.
  pid_t pid = 0;
  int step = 0;
  /// As in /proc/PID/stat: R, S, T (stopped), ...; 0 if there is no such process.
  char state = 0;
};

/// The state of a process for RankProgress::state.
char process_state(pid_t pid);

/// Explains which ranks keep the others of a job of `num_processes` waiting: those that have not begun, are
/// gone or stopped, or are some steps behind. If none of this machine is missing, names the other possible
/// causes.
std::string explain_stall(std::span<const RankProgress> ranks, int num_processes);

/// Calls `expired` on a separate thread when restart() has not been called for `limit`.
class Watchdog {
 public:
  Watchdog(std::chrono::milliseconds limit, std::function<void()> expired);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Restarts the time limit.
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
