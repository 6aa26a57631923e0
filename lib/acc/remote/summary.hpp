// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/running_clock.hpp"

// What the client makes of that which several hosts say.

namespace acc::launcher {

/// How the part of a host ended.
struct HostEnd {
  /// Absent: the connection was lost before.
  std::optional<int> code = {};
};

/// The exit code of a job whose parts ended like this, in the order of their ends. A job that survives the
/// loss of a host is well if the parts that were not lost are.
int code_of_job(const std::vector<HostEnd>& ends, bool survives_loss);

/// Why a host cannot start the job.
struct HostProblem {
  std::string host = {};
  Problem problem = {};
};

/// The problems, each with the hosts that have it: `a, b: train.py: no such file`.
std::vector<Problem> merge_problems(const std::vector<HostProblem>& problems);

/// Lines of acc on a host, for a person: `acc: text` becomes `acc: host: text`.
std::string with_host(std::string_view lines, const std::string& host);

/// What several hosts say alike at about the same time is said once. Remembers the last texts.
class RepeatFilter {
 public:
  /// Whether this is not what another host has just said. Output is lost on each host by itself.
  bool is_new(const std::string& text, int host, RunningClock::time_point now);

 private:
  static constexpr std::size_t kRemembered = 256;
  static constexpr std::chrono::seconds kSameTime{5};
  struct Said {
    int host = 0;
    RunningClock::time_point time = {};
  };
  std::map<std::string, Said> said_ = {};
  std::deque<std::string> order_ = {};
};

}  // namespace acc::launcher
