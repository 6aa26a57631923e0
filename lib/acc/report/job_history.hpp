// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "acc/report/event_lines.hpp"

namespace acc::launcher {

// Times are in seconds of Unix, by the clock of the first node; durations in seconds.

/// A part of the time between two moments.
struct TimeSpan {
  double begin = 0;
  double end = 0;

  double length() const { return end - begin; }
};

/// The length of what both have in common.
double overlap(const TimeSpan& first, const TimeSpan& second);

/// How a worker failed.
struct FailureRecord {
  double time = 0;
  int attempt = 0;
  int rank = 0;
  std::string host = {};
  /// `exit code 1`, `SIGKILL`, with `out of memory` if that is known.
  std::string status = {};
  std::string message = {};
  std::string stderr_tail = {};
};

/// The workers' life from one start to the next, on all nodes.
struct AttemptRecord {
  int number = 0;
  TimeSpan time = {};
  int nodes = 1;
  int world_size = 1;
  /// How it ended: empty, or what went wrong.
  std::string problem = {};
  /// By rank, in the order of time.
  std::map<int, std::vector<RankSample>> ranks = {};
};

/// Something that happened at one moment.
struct Moment {
  enum class Kind { restart, hang, straggler, nodes, signal, state, warning };
  Kind kind = Kind::warning;
  double time = 0;
  std::string host = {};
  std::string text = {};
};

/// Where logs without an end break off.
struct LastEvent {
  std::string name = {};
  double time = 0;
  std::string host = {};
  /// Ranks that had started in the last attempt and had not ended.
  std::set<int> running = {};
};

struct SettingRecord {
  std::string name = {};
  std::string value = {};
  std::string origin = {};
};

/// What the event logs of a job tell.
struct JobHistory {
  std::string run_id = {};
  TimeSpan time = {};
  std::set<std::string> hosts = {};
  /// Absent: no log has the end.
  std::optional<int> exit_code = {};
  LastEvent last = {};
  std::string stop_signal = {};
  /// Why acc itself could not go on.
  std::string failed = {};
  int restarts = 0;
  std::vector<std::string> command = {};
  std::vector<SettingRecord> settings = {};
  std::vector<AttemptRecord> attempts = {};
  /// Of the GPUs that ranks have processes on; of a host on which that is not known, of all. By UUID, else by
  /// host and index; in the order of time.
  std::map<std::string, std::vector<GpuSample>> gpus = {};
  std::vector<FailureRecord> failures = {};
  /// Of these the one by which the job has ended; absent: it has not ended by a worker's failure.
  std::optional<FailureRecord> cause = {};
  std::vector<Moment> moments = {};
  /// In which all ranks hung, or were suspended.
  std::vector<TimeSpan> standstills = {};
  /// What a reader of the report should know of the logs, one line each.
  std::vector<std::string> notes = {};
};

/// What the lines tell of the last run that they have, or of `run_id`. Clocks of other hosts are corrected by
/// the starts of attempts, which all nodes notice at once. Throws Error{usage} if there is no such run.
JobHistory job_history(EventLines lines, const std::string& run_id = "");

}  // namespace acc::launcher
