// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/control/progress_view.hpp"

namespace acc::launcher {

/// The destination of one stream of a rank, if it can be read again.
struct StreamDestination {
  enum class Kind {
    passed,     ///< acc's own stream, which the rank inherited: not kept
    discarded,  ///< a filter keeps it off the console: not kept
    memory,     ///< the agent keeps its end
    file,       ///< a log file has all of it
  };
  Kind kind = Kind::passed;
  std::filesystem::path file = {};

  bool operator==(const StreamDestination&) const = default;
};

/// One worker of a running job.
struct RankView {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  /// Its pid in the job's pid namespace; 0: the same.
  pid_t pid_inside = 0;
  /// How it ended, as text; empty while it runs.
  std::string ended = {};
  StreamDestination out = {};
  StreamDestination err = {};
  /// Absent where it does not say.
  std::optional<ProgressView> progress = {};

  /// Its pid as the agent sees it.
  pid_t own_pid() const { return pid_inside == 0 ? pid : pid_inside; }

  bool operator==(const RankView&) const = default;
};

/// The Python of `--preload`, while it imports.
struct ImportView {
  pid_t pid = 0;
  /// As RankView::pid_inside.
  pid_t pid_inside = 0;
  /// The module that is being imported; empty: Python itself starts.
  std::string module = {};
  /// When it began with that.
  std::chrono::system_clock::time_point started = {};

  /// Its pid as the agent sees it.
  pid_t own_pid() const { return pid_inside == 0 ? pid : pid_inside; }

  bool operator==(const ImportView&) const = default;
};

/// `importing torch`.
std::string to_string(const ImportView& importing);

/// What a running job reports of itself. Its resource use is read from /proc: see rank_state.hpp.
struct JobView {
  /// Unique among the jobs of its user: `train-4711`.
  std::string id = {};
  /// The process that the user started, and the one that runs the workers.
  pid_t pid = 0;
  pid_t agent = 0;
  std::string run_id = {};
  int attempt = 0;
  int max_restarts = 0;
  int world_size = 1;
  /// How many ranks this node has, or would have as a spare; 0: it does not say.
  int workers = 0;
  std::chrono::system_clock::time_point started = {};
  std::vector<std::string> command = {};
  std::filesystem::path folder = {};
  /// State of this node in the rendezvous: `searching`, `connected`, ...; empty in a job of one node.
  std::string rendezvous = {};
  /// Why a request to stop ends this node's part of the job alone, for the user; empty: it ends the job.
  std::string stops_alone = {};
  /// Of the client of `--hosts`, which has no ranks of its own: on how many hosts the job runs; else 0.
  int hosts = 0;
  /// Workers start when it is over.
  std::optional<ImportView> importing = {};
  std::vector<RankView> ranks = {};

  /// Other nodes may have ranks of it, too.
  bool has_other_nodes() const { return hosts > 0 || !rendezvous.empty(); }

  bool operator==(const JobView&) const = default;
};

/// What a request to stop has ended, when it has: `train-4711 has ended with exit code 143`. Of a job of
/// several nodes it also says what becomes of the others.
std::string stop_text(const JobView& job, std::optional<int> exit_code);

/// Schema 1 of `acc ps --json`; fields are only added to it.
nlohmann::json to_json(const JobView& job);

nlohmann::json to_json(const RankView& rank);

/// Both throw Error{system} for an invalid view, such as that of another version of acc.
JobView job_view_from_json(const nlohmann::json& json);
RankView rank_view_from_json(const nlohmann::json& json);

/// `train-4711`: the name of the script, or of the program, and the pid.
std::string job_id(const std::vector<std::string>& command, pid_t pid);

/// A worker's standard output and error.
enum class StreamName { out, err };

/// The last output of one worker, both streams in order of arrival. Positions count bytes from the beginning,
/// so a reader that continues at a position notices what it has missed.
class OutputRing {
 public:
  /// The number of bytes kept, at least.
  static constexpr std::size_t kKept = std::size_t{32} << 10U;

  void append(StreamName stream, std::string_view bytes);

  /// Consecutive bytes of one stream.
  struct Piece {
    StreamName stream = StreamName::out;
    std::uint64_t begin = 0;
    std::string bytes = {};
  };

  /// The piece at `position`, or the oldest one if that is no longer kept; empty at the end. Continue at the
  /// end of the piece.
  Piece read(std::uint64_t position) const;

  std::uint64_t begin() const { return pieces_.empty() ? end_ : pieces_.front().begin; }
  std::uint64_t end() const { return end_; }

 private:
  std::deque<Piece> pieces_ = {};
  std::uint64_t end_ = 0;
};

}  // namespace acc::launcher
