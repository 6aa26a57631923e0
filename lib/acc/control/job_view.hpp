// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// The destination of one stream of a rank, if it can be read again.
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

/// What a running job reports about itself. The rest is read from /proc: see rank_state.hpp.
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
  /// What this node does among the job's nodes: `searching`, `connected`, ...; empty: it is the only one.
  std::string rendezvous = {};
  std::vector<RankView> ranks = {};

  bool operator==(const JobView&) const = default;
};

/// Schema 1 of `acc ps --json`; fields are only added to it.
nlohmann::json to_json(const JobView& job);

nlohmann::json to_json(const RankView& rank);

/// Both throw Error{system} for an invalid view, as of another version of acc.
JobView job_view_from_json(const nlohmann::json& json);
RankView rank_view_from_json(const nlohmann::json& json);

/// `train-4711`: the script's name, or the program's, with the process behind it.
std::string job_id(const std::vector<std::string>& command, pid_t pid);

/// A worker's standard output and error.
enum class StreamName { out, err };

/// The last output of one worker, both streams in order of arrival. Positions count bytes from the beginning,
/// so a reader that continues at a position notices what it has missed.
class OutputRing {
 public:
  /// The number of bytes kept; at times a little more.
  static constexpr std::size_t kKept = std::size_t{32} << 10U;

  void append(StreamName stream, std::string_view bytes);

  /// Bytes of one stream in a row.
  struct Piece {
    StreamName stream = StreamName::out;
    std::uint64_t begin = 0;
    std::string bytes = {};
  };

  /// The piece at `position`, or the oldest one kept when that is gone; without bytes at the end. The next
  /// position is behind it.
  Piece read(std::uint64_t position) const;

  std::uint64_t begin() const { return pieces_.empty() ? end_ : pieces_.front().begin; }
  std::uint64_t end() const { return end_; }

 private:
  std::deque<Piece> pieces_ = {};
  std::uint64_t end_ = 0;
};

}  // namespace acc::launcher
