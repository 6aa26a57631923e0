// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>

namespace acc::launcher {

/// Long work on an event loop: a slice of one task, then whatever else the loop has ready, then a slice of
/// the next task. So short work never waits for more than one slice, however many tasks are long.
class Turns : public std::enable_shared_from_this<Turns> {
 public:
  using Clock = std::chrono::steady_clock;
  /// Works until about `until`. True: there is more to do.
  using Slice = std::function<bool(Clock::time_point until)>;

  explicit Turns(boost::asio::io_context& loop) : loop_(loop) {}

  /// `slice` is called from the loop, again and again until it returns false.
  void add(Slice slice);

  /// No slice is called after this.
  void close() { tasks_.clear(); }

 private:
  void run();

  boost::asio::io_context& loop_;
  std::deque<Slice> tasks_ = {};
  bool running_ = false;
};

}  // namespace acc::launcher
