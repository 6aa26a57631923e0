// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <memory>

#include "acc/store/connection.hpp"

namespace acc {

/// Ends connections whose clients do not greet: silence must not keep a descriptor. One timer for all.
class Greetings : public std::enable_shared_from_this<Greetings> {
 public:
  Greetings(boost::asio::io_context& loop, std::chrono::milliseconds patience);

  /// From now on `connection` has `patience` to greet, and again as long as something of it waits to be read:
  /// it is not the client's fault when this process was held up.
  void expect(const std::shared_ptr<Connection>& connection);

  /// No connection is ended after this call.
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Expected {
    Clock::time_point deadline = {};
    std::weak_ptr<Connection> connection = {};
  };

  void wait();
  void end_late();

  boost::asio::steady_timer timer_;
  std::chrono::milliseconds patience_;
  std::deque<Expected> expected_ = {};
  bool waiting_ = false;
};

}  // namespace acc
