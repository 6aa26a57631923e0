// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace acc::launcher {

/// Where one stream of a rank goes, as far as it can be read again.
struct StreamPlace {
  enum class Kind {
    passed,     ///< acc's own stream, which the rank inherited: nobody keeps anything
    discarded,  ///< a filter keeps it away from the console
    memory,     ///< the agent keeps the end of it
    file,       ///< a log file has all of it
  };
  Kind kind = Kind::passed;
  std::filesystem::path file = {};

  bool operator==(const StreamPlace&) const = default;
};

/// One worker of a running job.
struct RankView {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  /// The number that it has for itself and for its job's agent, where the job has a pid namespace; 0: the
  /// same.
  pid_t pid_inside = 0;
  /// How it ended, in words; empty while it runs.
  std::string ended = {};
  StreamPlace out = {};
  StreamPlace err = {};

  /// For the agent.
  pid_t own_pid() const { return pid_inside == 0 ? pid : pid_inside; }

  bool operator==(const RankView&) const = default;
};

/// What a running job says about itself. The system knows the rest: see rank_usage.hpp.
struct JobView {
  /// Names the job among those of its user: `train-4711`.
  std::string id = {};
  /// The process that the user started, and the one that runs the workers.
  pid_t pid = 0;
  pid_t agent = 0;
  std::string run_id = {};
  int attempt = 0;
  int max_restarts = 0;
  int world_size = 1;
  std::chrono::system_clock::time_point started = {};
  std::vector<std::string> command = {};
  std::filesystem::path folder = {};
  std::vector<RankView> ranks = {};

  bool operator==(const JobView&) const = default;
};

/// Schema 1 of `acc ps --json`; fields are only added to it.
nlohmann::json to_json(const JobView& job);

nlohmann::json to_json(const RankView& rank);

/// Both throw Error{system} when the text is no view: another version of acc wrote it.
JobView job_view_from_json(const nlohmann::json& json);
RankView rank_view_from_json(const nlohmann::json& json);

/// `train-4711`: the script's name, or the program's, with the process behind it.
std::string job_id(const std::vector<std::string>& command, pid_t pid);

}  // namespace acc::launcher
