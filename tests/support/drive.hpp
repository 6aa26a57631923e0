// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "acc/base/running_clock.hpp"

namespace acc::test {

/// Runs the loop until `reached`, one handler at a time; throws after 60 s, so that a hang becomes a failed
/// test.
template <typename Condition>
void drive(boost::asio::io_context& loop, Condition reached) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  loop.restart();
  while (!reached()) {
    if (loop.run_one_until(limit) == 0) throw std::runtime_error("what was waited for did not come");
  }
}

/// Returns after `time` in which the loop, with timers that wait, did not run: as if this process were
/// stopped, a moment before a timer was due.
inline void stand_still(boost::asio::io_context& loop, std::chrono::milliseconds time) {
  bool over = false;
  boost::asio::steady_timer begins(loop, std::chrono::milliseconds(1));
  begins.async_wait([&](const boost::system::error_code&) {
    RunningClock::begin_wait(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(time);
    over = true;
  });
  drive(loop, [&] { return over; });
}

}  // namespace acc::test
