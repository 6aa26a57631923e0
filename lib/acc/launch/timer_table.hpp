// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// Which process has to be through with what, and when: the requests of torch's FileTimerClient.
class TimerTable {
 public:
  using Time = std::chrono::system_clock::time_point;

  /// A process that was not through in time.
  struct Expired {
    pid_t pid = 0;
    std::string scope = {};
    int signal = 0;
    bool operator==(const Expired&) const = default;
  };

  /// Takes one request: a JSON object with pid, scope_id, expiration_time (seconds since 1970; negative: it
  /// is through) and signal. False: it is none.
  bool take(std::string_view line);

  /// When the next one expires.
  std::optional<Time> next() const;

  /// Removes and returns the processes that had to be through before `now`, each once, with the signal of its
  /// oldest timer that has one. What asks for no signal is removed in silence, as torch does it.
  std::vector<Expired> expire(Time now);

 private:
  struct Timer {
    Time when = {};
    int signal = 0;
  };
  std::map<pid_t, std::map<std::string, Timer>> timers_ = {};
};

}  // namespace acc::launcher
