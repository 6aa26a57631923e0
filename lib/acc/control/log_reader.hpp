// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/control/control_client.hpp"
#include "acc/control/job_view.hpp"

namespace acc::launcher {

/// Reads the output of the ranks of a running job: from their log files, or from the agent if it keeps the
/// end of a stream.
class LogReader {
 public:
  /// Receives the bytes of one rank, in order.
  using OnBytes = std::function<void(int rank, StreamName stream, std::string_view bytes)>;
  /// Receives a sentence about missing output.
  using OnNote = std::function<void(const std::string&)>;
  using OnSilence = std::function<void(int rank, StreamName stream)>;
  using OnBreak = std::function<void(int rank, StreamName stream)>;

  /// `ranks` empty: all. Throws Error{usage} for a rank that the job does not have here.
  LogReader(RunningJob& job, std::vector<int> ranks, OnBytes on_bytes, OnNote on_note);

  /// Reads the output so far.
  void read();

  /// Whether a file of the output could not be opened, which was noted.
  bool has_failed() const { return failed_; }

  /// Reads the output until the job ends, across restarts. `on_silence` is called for a stream of which
  /// nothing has come for a second, once until more comes; `on_break` for one that does not go on where it
  /// was: between two attempts, and in a file that was cut to begin anew, which is noted, as is an end of the
  /// output that the job could not send. Returns the job's exit code, if it was sent.
  std::optional<int> follow(
      const OnSilence& on_silence = [](int, StreamName) {}, const OnBreak& on_break = [](int, StreamName) {});

 private:
  struct Log {
    int rank = 0;
    StreamName stream = StreamName::out;
    Descriptor file = {};
    /// Its inotify watch; -1: there is none.
    int watch = -1;
  };

  bool wants(int rank) const;
  void open_rank(const RankView& rank);
  void on_started(const RankView& rank, const OnBreak& on_break);
  void close_files(int rank);
  void open_stream(int rank, StreamName stream, const StreamDestination& destination);
  void read_files(const OnBreak& on_break = [](int, StreamName) {});
  off_t remaining_in(const Log& log, const OnBreak& on_break) const;
  void on_piece(const nlohmann::json& message);
  void note_lost_end(const OnBreak& on_break);
  void pass_on(int rank, StreamName stream, std::string_view bytes);
  void report_silence(const OnSilence& on_silence);
  bool wait_for_change(pollfd& agent) const;

  RunningJob& job_;
  std::vector<int> ranks_;
  OnBytes on_bytes_;
  OnNote on_note_;
  std::set<std::string> notes_ = {};
  bool failed_ = false;
  Descriptor changes_;
  /// The longest wait for a change; -1: until there is one.
  int poll_ms_ = -1;
  /// When the last bytes of each stream came; without those whose silence is reported.
  std::map<std::pair<int, StreamName>, std::chrono::steady_clock::time_point> last_bytes_ = {};
  std::map<std::filesystem::path, Log> logs_ = {};
  /// The streams without a log file.
  std::set<std::pair<int, StreamName>> kept_by_agent_ = {};
  /// The process of each rank whose output is read.
  std::map<int, pid_t> pids_ = {};
};

}  // namespace acc::launcher
