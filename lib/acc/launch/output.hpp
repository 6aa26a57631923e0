// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "acc/base/descriptor.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc {

/// What a worker gets as its standard output and error; an empty one: acc's own.
struct WorkerStreams {
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

  /// Called when finish() could not write everything at once, and now has.
  void on_written(std::function<void()> written);

  /// The streams of a worker about to start; what it writes is carried from now on. `folder` empty: no files;
  /// else the filtered logs are beside it. `rank` is its number over all nodes, when that is another.
  /// Throws Error{system}.
  WorkerStreams open(int local_rank, const std::filesystem::path& folder, const std::string& line_prefix,
                     std::optional<int> rank = {});

  /// Workers have ended: takes what their pipes still hold and closes them, whoever keeps them open.
  void end_attempt();

  /// The last lines that the worker wrote to its standard error in the attempt that ended last.
  std::string last_words(int local_rank) const;

  /// Lines of acc itself, for its standard error.
  void announce(std::string_view lines);

  /// The terminal has another size now.
  void resize();

  /// True: everything is written. Else the callback of on_written() follows.
  bool finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc
