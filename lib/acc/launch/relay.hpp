// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "acc/base/files.hpp"
#include "acc/launch/console.hpp"
#include "acc/launch/error_text.hpp"
#include "acc/launch/line_prefix.hpp"
#include "acc/launch/log_file.hpp"

namespace acc::launcher {

/// A pipe or pseudo-terminal from a worker to us.
struct Channel {
  Descriptor ours = {};
  Descriptor workers = {};
  bool terminal = false;  ///< Whether it is a pseudo-terminal.
};

/// A pipe. Throws Error{system}.
Channel make_pipe();

/// A pseudo-terminal in raw mode with the window size of `like`, for a worker whose isatty(3) has to be true.
/// Returns nullopt when the system has none left.
std::optional<Channel> make_pseudo_terminal(int like);

/// Copies the window size of `like` to the pseudo-terminal.
void copy_window_size(int like, int pseudo_terminal);

/// The destinations of what a relay reads; empty ones are left out.
struct RelayTarget {
  OutputSink* sink = nullptr;
  std::optional<LinePrefixer> prefixer = {};
  LogFile log = {};
  Tail* tail = nullptr;
  /// Is called with every chunk.
  std::function<void(std::string_view)> record = {};
  /// The log cannot be written, for this reason.
  std::function<void(const std::string&)> on_full_log = {};
  /// This many bytes of the stream are missing in the log.
  std::function<void(std::uint64_t)> on_lost = {};
};

/// Reads one stream of one worker on the event loop and passes it on. `buffer` is used only within a read, so
/// all relays can share one.
class Relay : public std::enable_shared_from_this<Relay> {
 public:
  /// How long a stream with a prefix is silent before its unfinished line is shown.
  static constexpr auto kUnfinishedAfter = std::chrono::seconds(1);

  Relay(boost::asio::io_context& loop, Descriptor from, bool terminal, RelayTarget target,
        std::span<char> buffer);

  /// Waits for more to read, unless it already does or the sink accepts no more.
  void start();

  /// Reads what is available and closes the stream, even when another process still holds the other end.
  void finish();

  void resize(int like);

 private:
  enum class State { more, drained, ended };

  State read_once();
  void pass_on(std::string_view chunk, bool drained);
  void write_log(std::string_view chunk);
  void wait_for_rest_of_line();
  void end();

  boost::asio::posix::stream_descriptor from_;
  bool terminal_;
  RelayTarget target_;
  std::span<char> buffer_;
  int source_ = 0;
  bool waiting_ = false;
  boost::asio::steady_timer rest_of_line_;
  bool waiting_for_rest_ = false;
  std::chrono::steady_clock::time_point last_read_ = {};
};

}  // namespace acc::launcher
