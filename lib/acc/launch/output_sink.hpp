// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <string_view>

#include "acc/launch/console.hpp"
#include "acc/launch/line_mixer.hpp"

namespace acc {

/// A console on the event loop, with the lines of many workers joined in front of it.
class OutputSink {
 public:
  /// `on_room`: the sink takes more again, or has written everything.
  OutputSink(boost::asio::io_context& loop, int fd, std::function<void()> on_room);

  int add_source() { return mixer_.add_source(); }
  void feed(int source, std::string_view chunk, bool drained);
  void close_source(int source);
  void announce(std::string_view lines);
  /// Everything goes out now, whoever is in the middle of a line. True: it is written.
  bool finish();

  /// False: whoever feeds this source should stop reading until `on_room`.
  bool wants(int source);
  std::size_t backlog() const { return console_.backlog(); }

 private:
  void after_change();
  void wait_writable();
  void wait_deadline();

  Console console_;
  LineMixer mixer_;
  boost::asio::posix::stream_descriptor writable_;
  boost::asio::steady_timer timer_;
  std::function<void()> on_room_;
  bool waiting_writable_ = false;
  /// A source was told to stop.
  bool stalled_ = false;
};

}  // namespace acc
