// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <set>
#include <string_view>

#include "acc/launch/console.hpp"
#include "acc/launch/line_mixer.hpp"

namespace acc::launcher {

/// A console on the event loop, with the lines of many workers joined in front of it.
class OutputSink {
 public:
  struct Handlers {
    /// The sink takes more again, or has written everything.
    std::function<void()> on_room = [] {};
    /// The console has got into this state, with the error number that says why; once for each state.
    std::function<void(Console::State state, int error)> on_trouble = [](Console::State, int) {};
  };

  OutputSink(boost::asio::io_context& loop, int fd, Handlers handlers);

  int add_source() { return mixer_.add_source(); }
  void feed(int source, std::string_view chunk, bool drained);
  void close_source(int source);
  void announce(std::string_view lines);
  /// Everything goes out now, whoever is in the middle of a line. False: it has to wait for the reader.
  bool finish();

  /// False: whoever feeds this source should stop reading until `on_room`.
  bool wants(int source);
  /// The console is a terminal.
  bool is_terminal() const { return terminal_; }
  /// How many lines sources have fed to a terminal.
  std::uint64_t lines() const { return lines_; }

  /// Something waits for the reader of the console.
  bool has_to_wait() const;

  /// Bytes that found no room in a file, after a last try.
  std::uint64_t give_up() { return console_.give_up(); }

 private:
  bool takes_more() const;
  void after_change();
  void wait_writable();
  void wait_deadline();

  Console console_;
  LineMixer mixer_;
  boost::asio::posix::stream_descriptor writable_;
  boost::asio::steady_timer timer_;
  Handlers handlers_;
  bool terminal_;
  std::uint64_t lines_ = 0;
  std::set<Console::State> told_ = {};
  bool waiting_writable_ = false;
  /// A source was told to stop.
  bool stalled_ = false;
};

}  // namespace acc::launcher
