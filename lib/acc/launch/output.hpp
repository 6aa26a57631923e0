// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "acc/base/files.hpp"
#include "acc/control/job_view.hpp"
#include "acc/launch/job_status.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// Where one stream of one worker goes.
struct StreamPlan {
  /// Into `<folder>/stdout.log` or `stderr.log`.
  bool file = false;
  /// To acc's own stream.
  bool console = false;
  /// On the console each line has its prefix (`--tee`); else bytes pass as they are.
  bool prefixed = false;
  /// On the console each line has its time (`--log-timestamps`).
  bool stamped = false;

  bool operator==(const StreamPlan&) const = default;
};

/// A worker's rank on this node and over all nodes.
struct WorkerNumbers {
  int local_rank = 0;
  int rank = 0;
};

/// torchrun 2.11's rules: `--tee` implies the file; a rank outside `--local-ranks-filter` stays away from the
/// console, and so does one outside `--ranks-filter`. `has_folder`: there is a place for files.
StreamPlan plan_stream(const OutputPlan& output, WorkerNumbers worker, Streams stream, bool has_folder);

/// The standard streams of a worker; an empty one means acc's own.
struct WorkerStreams {
  Descriptor in = {};
  Descriptor out = {};
  Descriptor err = {};
};

/// Forwards the output of workers to the console and to log files, in whole lines and unchanged, on the
/// caller's event loop. Reads no faster than the reader of acc's own streams (back pressure).
class Output {
 public:
  /// The descriptors of acc's own streams; tests pass others.
  struct Consoles {
    int out = 1;
    int err = 2;
  };

  Output(boost::asio::io_context& loop, const OutputPlan& plan, int workers, Consoles consoles);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Called with a warning when output is lost but the job goes on; once per reason.
  void on_warning(std::function<void(std::string)> warn);

  /// Called when the reader of acc's output is gone and the output goes nowhere else.
  void on_reader_lost(std::function<void()> lost);

  /// Called when the output that was pending at finish() is written.
  void on_written(std::function<void()> written);

  /// Opens the streams of a worker about to start, and forwards what it writes. `folder` is for its files;
  /// empty: none. The filtered logs are beside it. `rank` is its rank over all nodes, if that differs. Throws
  /// Error{system}.
  WorkerStreams open(int local_rank, const std::filesystem::path& folder, const std::string& line_prefix,
                     std::optional<int> rank = {});

  /// Registers a worker about to start that inherits acc's own streams, whatever the plan says.
  void open_untouched(int local_rank);

  /// Reads what is left in the pipes and closes them, after the workers have ended.
  void end_attempt();

  /// The last lines of the worker's standard error in the last attempt.
  std::string stderr_tail(int local_rank) const;

  /// Whether the end of the worker's standard error is still visible on the terminal on which acc's own lines
  /// appear.
  bool is_just_above(int local_rank) const;

  /// Where the streams of a worker of this attempt go.
  StreamDestinations destinations(int local_rank) const;

  /// The last output of the worker in this attempt, as far as it passed through here. Null before open().
  const OutputRing* ring(int local_rank) const;

  /// The number of bytes that the worker has written in this attempt, inherited streams excluded; to files
  /// only if the plan has the output observed.
  std::uint64_t written(int local_rank) const;

  /// Called when a ring has grown.
  void on_growth(std::function<void()> grown);

  /// Writes lines of acc itself to its standard error.
  void announce(std::string_view lines);

  /// Copies the new window size to the pseudo-terminals.
  void resize();

  struct Lost {
    std::uint64_t bytes = 0;
    /// `No space left on device`.
    std::string reason = {};
  };
  /// Output that was lost to a full disk.
  Lost lost();

  /// Returns true when everything is written; otherwise on_written() is called later.
  bool finish();

  /// The number of bytes that readers that are waited for have not read, as far as the system tells.
  std::uint64_t unread() const;

  /// Gives up what the reader has not read.
  Lost drop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
