// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/base/running_clock.hpp"

namespace acc::launcher {

/// The deadlines of worker processes, as set by torch's FileTimerClient.
class TimerTable {
 public:
  using Time = RunningClock::time_point;

  /// The same moment on the clock of the requests and on that of the deadlines.
  struct Now {
    std::chrono::system_clock::time_point wall = std::chrono::system_clock::now();
    Time running = RunningClock::now();
  };

  /// A process that missed a deadline.
  struct Expired {
    pid_t pid = 0;
    std::string scope = {};
    int signal = 0;
    /// When it started, as process_start() says it: another process may have its pid.
    std::uint64_t process_start = 0;
    bool operator==(const Expired&) const = default;
  };

  /// Says when the process of a pid started; 0: there is none.
  using StartOf = std::function<std::uint64_t(pid_t)>;

  TimerTable();
  explicit TimerTable(StartOf start_of) : start_of_(std::move(start_of)) {}

  /// Handles one request: a JSON object with pid, scope_id, expiration_time (seconds since 1970; negative:
  /// released) and signal. Returns false when `line` is not a request. The timers of a process with the same
  /// pid that has ended are removed.
  bool add(std::string_view line, const Now& now);

  /// The earliest deadline.
  std::optional<Time> next() const;

  /// Removes and returns the processes that have missed a deadline, each once, with the signal of its oldest
  /// timer that has one. Expired timers without a signal are removed only, as torch does.
  std::vector<Expired> expire(Time now);

 private:
  struct Timer {
    Time expiry = {};
    int signal = 0;
  };
  struct TimedProcess {
    std::uint64_t start = 0;
    /// By scope.
    std::map<std::string, Timer> timers = {};
  };
  StartOf start_of_;
  std::map<pid_t, TimedProcess> processes_ = {};
};

/// torchrun's file timer: workers set deadlines through a named pipe; one that misses a deadline is
/// signalled. Unlike torchrun, which then ends the agent, acc handles it as a failed worker.
class FileTimer {
 public:
  using OnExpired = std::function<void(const TimerTable::Expired&)>;

  /// Creates the pipe, replacing an old one. Throws Error{system}.
  FileTimer(boost::asio::io_context& loop, std::filesystem::path pipe, OnExpired on_expired);
  /// Removes the pipe.
  ~FileTimer();
  FileTimer(const FileTimer&) = delete;
  FileTimer& operator=(const FileTimer&) = delete;

 private:
  void wait_readable();
  void read_requests();
  void wait_deadline();

  std::filesystem::path path_;
  boost::asio::posix::stream_descriptor pipe_;
  RunningTimer clock_;
  OnExpired on_expired_;
  TimerTable table_ = {};
  std::string unread_ = {};
};

}  // namespace acc::launcher
