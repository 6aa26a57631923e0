// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>

namespace acc::launcher {

/// A connection whose client has to identify itself first.
class Guest {
 public:
  virtual ~Guest() = default;

  /// It is open and the client has not identified itself.
  virtual bool is_awaited() const = 0;
  /// Received bytes are still to be read.
  virtual bool has_unread() = 0;
  virtual void end() = 0;
};

/// Closes connections whose clients do not identify themselves in time, so that silent ones do not occupy
/// descriptors and memory. Uses one timer for all.
class Greetings : public std::enable_shared_from_this<Greetings> {
 public:
  struct Limits {
    std::chrono::milliseconds timeout = std::chrono::seconds(5);
    /// The number of pending connections; for one more the oldest is closed.
    std::size_t max_guests = SIZE_MAX;
  };

  Greetings(boost::asio::io_context& loop, const Limits& limits);

  /// Starts the timeout of `guest`. It is extended while received bytes are still to be read, which is a
  /// delay of this process.
  void expect(const std::shared_ptr<Guest>& guest);

  /// Stops; no connection is closed after this call.
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Expected {
    Clock::time_point deadline = {};
    std::weak_ptr<Guest> guest = {};
  };

  void wait();
  void end_late();
  void make_room();

  boost::asio::steady_timer timer_;
  Limits limits_;
  std::deque<Expected> expected_ = {};
  bool waiting_ = false;
};

}  // namespace acc::launcher
