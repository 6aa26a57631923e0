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

#include "acc/base/descriptor.hpp"
#include "acc/control/output_ring.hpp"
#include "acc/launch/job_record.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// What a worker gets as its standard streams; an empty one: acc's own.
struct WorkerStreams {
  Descriptor in = {};
  Descriptor out = {};
  Descriptor err = {};
};

/// Carries what workers write to where the person wants it: whole lines, no byte changed, on the caller's
/// event loop. Reads no faster than the reader of acc's own streams takes it.
class Output {
 public:
  /// acc's own streams; tests give others.
  struct Consoles {
    int out = 1;
    int err = 2;
  };

  Output(boost::asio::io_context& loop, const OutputPlan& plan, int workers, Consoles consoles);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Called with a sentence when something is lost but the job goes on; once per reason.
  void on_warning(std::function<void(std::string)> warn);

  /// Called when whoever read acc's output is gone, and nothing else gets what workers write.
  void on_reader_lost(std::function<void()> lost);

  /// Called when finish() could not write everything at once, and now has.
  void on_written(std::function<void()> written);

  /// The streams of a worker about to start; what it writes is carried from now on. `folder` empty: no files;
  /// else the filtered logs are beside it. `rank` is its number over all nodes, when that is another.
  /// Throws Error{system}.
  WorkerStreams open(int local_rank, const std::filesystem::path& folder, const std::string& line_prefix,
                     std::optional<int> rank = {});

  /// A worker about to start that gets acc's own streams, whatever the plan says of the others.
  void open_untouched(int local_rank);

  /// Workers have ended: takes what their pipes still hold and closes them, whoever keeps them open.
  void end_attempt();

  /// The last lines that the worker wrote to its standard error in the attempt that ended last.
  std::string last_words(int local_rank) const;

  /// The terminal on which acc's own lines appear has shown what the worker wrote to its standard error, and
  /// little since.
  bool is_just_above(int local_rank) const;

  /// Where the streams of a worker of this attempt go.
  StreamPlaces places(int local_rank) const;

  /// The end of what the worker wrote in this attempt, as far as it came through here. Null before open().
  const OutputRing* ring(int local_rank) const;

  /// Grows with everything that the worker writes in this attempt, except to a stream that it inherited.
  std::uint64_t written(int local_rank) const;

  /// Called when a ring has grown.
  void on_growth(std::function<void()> grown);

  /// Lines of acc itself, for its standard error.
  void announce(std::string_view lines);

  /// The terminal has another size now.
  void resize();

  /// What workers wrote and full disks did not take, after a last try.
  struct Lost {
    std::uint64_t bytes = 0;
    /// `No space left on device`.
    std::string reason = {};
  };
  Lost lost();

  /// True: everything is written. Else the callback of on_written() follows.
  bool finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
