// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>

namespace acc::launcher {

/// A connection whose other side is to say first who it is.
class Guest {
 public:
  virtual ~Guest() = default;

  /// It is open and has not said it.
  virtual bool is_awaited() const = 0;
  /// Something that it sent waits to be read.
  virtual bool has_unread() = 0;
  virtual void end() = 0;
};

/// Ends connections whose other side does not greet: silence must not keep a descriptor, nor memory. One
/// timer for all.
class Greetings : public std::enable_shared_from_this<Greetings> {
 public:
  struct Limits {
    std::chrono::milliseconds patience = std::chrono::seconds(5);
    /// Of those that are awaited. When one more comes the oldest ends.
    std::size_t max_guests = SIZE_MAX;
  };

  Greetings(boost::asio::io_context& loop, const Limits& limits);

  /// From now on `guest` has the time of the limits to greet, and again as long as something of it waits to
  /// be read: it is not its fault when this process was held up.
  void expect(const std::shared_ptr<Guest>& guest);

  /// No guest is ended after this call.
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
