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

/// Merges several sources into one destination without splitting lines and without changing a byte. Does no
/// I/O and reads no clock: the caller passes both.
class LineMixer {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// Must write all of it.
  using Write = std::function<void(std::string_view)>;

  /// How long other sources wait for the end of a line that a source has begun: since its last bytes, and in
  /// total.
  struct Timeouts {
    std::chrono::milliseconds silence;
    std::chrono::milliseconds max;
  };
  /// For a line: the program may be descheduled in the middle of it.
  static constexpr Timeouts kLine = {std::chrono::seconds(2), std::chrono::seconds(5)};
  /// For a line with a carriage return, a progress bar, which has no end.
  static constexpr Timeouts kProgressBar = {std::chrono::milliseconds(100), std::chrono::seconds(1)};

  /// For a line that keeps coming. It may have no end either: a source that did not end its line in this
  /// time counts as a progress bar until it does.
  static constexpr Timeouts kLongLine = {std::chrono::seconds(2), std::chrono::seconds(10)};

  explicit LineMixer(Write write) : write_(std::move(write)) {}

  int add_source();

  /// `drained`: nothing more can be read now, so an unfinished line (a prompt) is written at once.
  void feed(int source, std::string_view chunk, bool drained, TimePoint now);

  /// The source has ended; its buffered text is written when it is its turn.
  void close_source(int source, TimePoint now);

  /// Writes whole lines of acc itself at once, on a new line.
  void announce(std::string_view lines, TimePoint now);

  /// The number of buffered bytes of this source.
  std::size_t waiting(int source) const;

  /// When on_time() is to be called, unless something is fed before.
  std::optional<TimePoint> deadline() const;
  void on_time(TimePoint now);

  /// Writes all buffered text, also within another source's line.
  void flush(TimePoint now);

 private:
  struct Source {
    std::string pending = {};
    bool drained = true;
    bool queued = false;
    bool closed = false;
    bool endless = false;
  };

  void write(std::string_view text);
  void write_from(int id, std::string_view chunk);
  void release(TimePoint now);

  Write write_;
  std::map<int, Source> sources_ = {};
  int next_id_ = 0;
  /// The source whose unfinished line was written last.
  std::optional<int> holder_ = {};
  bool holder_drained_ = false;
  bool holder_is_progress_bar_ = false;
  TimePoint holder_wrote_ = {};
  /// Waiting sources, first come first served.
  std::deque<int> queue_ = {};
  TimePoint queue_since_ = {};
  bool at_line_start_ = true;
};

}  // namespace acc::launcher
