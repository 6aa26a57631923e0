// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace acc::launcher {

/// Joins what several sources write to one destination, without a byte more or less, so that no line is torn
/// by another's. Knows no file and no clock: the caller gives both.
class LineMixer {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// Takes all of it, in order.
  using Write = std::function<void(std::string_view)>;

  /// How long a source that has begun a line keeps the others waiting for its end: while it is silent, and
  /// altogether while it is never silent for long.
  struct Patience {
    std::chrono::milliseconds silence;
    std::chrono::milliseconds most;
  };
  /// A program may lose its CPU in the middle of a line.
  static constexpr Patience kLine = {std::chrono::seconds(2), std::chrono::seconds(5)};
  /// A line with a carriage return is a progress bar: it has no end to wait for.
  static constexpr Patience kProgressBar = {std::chrono::milliseconds(100), std::chrono::seconds(1)};

  explicit LineMixer(Write write) : write_(std::move(write)) {}

  int add_source();

  /// `drained`: the source has nothing more to read now, so that an unfinished line (a prompt) must not wait
  /// for its end.
  void feed(int source, std::string_view chunk, bool drained, TimePoint now);

  /// The source has ended; what it still had to write is written in its turn.
  void close_source(int source, TimePoint now);

  /// Whole lines of acc itself: written now, on a line of their own.
  void announce(std::string_view lines, TimePoint now);

  /// Bytes of this source that wait for another's line to end.
  std::size_t waiting(int source) const;

  /// When on_time() must be called, if nothing is fed before.
  std::optional<TimePoint> deadline() const;
  void on_time(TimePoint now);

  /// Writes what still waits, whoever is in the middle of a line.
  void flush(TimePoint now);

 private:
  struct Source {
    std::string held = {};
    bool drained = true;
    bool queued = false;
    bool closed = false;
  };

  void write(std::string_view text);
  void write_from(int id, std::string_view chunk);
  void release(TimePoint now);

  Write write_;
  std::map<int, Source> sources_ = {};
  int next_id_ = 0;
  /// The source whose unfinished line stands at the end of the destination.
  std::optional<int> holder_ = {};
  bool holder_drained_ = false;
  bool holder_is_progress_bar_ = false;
  TimePoint holder_wrote_ = {};
  /// Sources that wait, in the order in which they began to.
  std::deque<int> queue_ = {};
  TimePoint queue_since_ = {};
  bool at_line_start_ = true;
};

}  // namespace acc::launcher
