// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "acc/base/worker_env.hpp"
#include "acc/launch/log_file.hpp"

namespace acc::launcher {

/// The prefix of the tee'd lines of a worker: the template with torchrun's `role_name`, `rank`, `local_rank`
/// and `hostname`, and with `group_rank`, `host` (the same as `hostname`) and `attempt`.
std::string line_prefix(std::string_view line_prefix_template, const WorkerEnv& worker, int local_rank,
                        const std::string& host);

/// Local time with its offset, ISO 8601, to the millisecond: `2026-11-21T07:43:37.262+0100`.
std::string timestamp(std::chrono::system_clock::time_point time);

/// Cuts a stream into lines with a prefix each, as `--tee` shows them. A carriage return ends a line too, as
/// in Python's universal newlines, so that a progress bar is shown. A line longer than 1 MiB is shown in
/// pieces of that size, and one that stands unfinished (a prompt, `Compiling...`) when the caller asks for
/// it.
class LinePrefixer {
 public:
  /// Optional further treatment of each line.
  struct Options {
    /// Returns the text before the prefix: the time.
    std::function<std::string()> stamp = {};
    /// Receives each line too.
    std::shared_ptr<FilteredLog> copy = {};
  };

  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}
  LinePrefixer(std::string prefix, Options options)
      : prefix_(std::move(prefix)), options_(std::move(options)) {}

  /// Returns the lines that `chunk` completes.
  std::string feed(std::string_view chunk);

  /// Whether a line has begun of which not all is shown.
  bool has_unfinished() const { return line_.size() > shown_size_; }

  /// Returns what there is of the unfinished line, as a line; its rest will be another one.
  std::string show_unfinished();

  /// Returns the last line, if it has no newline.
  std::string finish();

 private:
  std::string with_prefix(std::string_view text) const;
  std::string end_line();

  std::string prefix_;
  Options options_ = {};
  std::string line_ = {};
  /// The bytes of it that are shown.
  std::size_t shown_size_ = 0;
  bool after_return_ = false;
};

}  // namespace acc::launcher
