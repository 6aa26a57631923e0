// SPDX-License-Identifier: Apache-2.0
#include "acc/base/running_clock.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "support/catch.hpp"

namespace running_clock_test {

using namespace acc;
using namespace std::chrono_literals;

namespace {

LostTime::TimePoint at(std::chrono::milliseconds time) {
  return LostTime::TimePoint(time);
}

}  // namespace

TEST_CASE("lost_time: what a wait lasts too long is lost", "[base]") {
  LostTime lost;
  CHECK(lost.begin_wait(at(0ms), 300ms) == 300ms);
  CHECK(lost.until(at(200ms)) == 0ms);
  CHECK(lost.until(at(7300ms)) == 7s);
  CHECK(lost.until(at(9s)) == 7s);  // nothing was waited for
  CHECK(lost.begin_wait(at(10s), 500ms) == 500ms);
  CHECK(lost.until(at(10500ms)) == 7s);
}

TEST_CASE("lost_time: a long wait is taken in steps, so that little of a pause within it goes unnoticed",
          "[base]") {
  LostTime lost;
  CHECK(lost.begin_wait(at(0ms), 600s) == LostTime::kMaxWait);
  CHECK(lost.until(at(60s)) >= 60s - LostTime::kMaxWait);
}

TEST_CASE("lost_time: only the latest wait counts", "[base]") {
  LostTime lost;
  lost.begin_wait(at(0ms), 100ms);
  lost.begin_wait(at(50ms), 800ms);
  CHECK(lost.until(at(850ms)) == 0ms);
}

TEST_CASE("lost_time: nothing is lost after the end of a wait", "[base]") {
  LostTime lost;
  lost.begin_wait(at(0ms), 300ms);
  lost.end_wait(at(200ms));
  CHECK(lost.until(at(7s)) == 0ms);
  lost.begin_wait(at(7s), 300ms);
  lost.end_wait(at(9300ms));
  CHECK(lost.until(at(10s)) == 2s);
}

TEST_CASE("running_timer: ends after its time", "[base]") {
  boost::asio::io_context loop;
  const auto began = RunningClock::now();
  RunningTimer timer(loop, 20ms);
  bool ended = false;
  timer.async_wait([&](boost::system::error_code error) { ended = !error; });
  loop.run();
  CHECK(ended);
  CHECK(RunningClock::now() - began >= 20ms);
}

TEST_CASE("running_timer: after a pause there is as much time left as before it", "[base]") {
  using Steady = std::chrono::steady_clock;
  boost::asio::io_context loop;
  const auto began = Steady::now();
  RunningTimer first(loop, 30ms);
  RunningTimer second(loop, 60ms);
  Steady::time_point ended = {};
  first.async_wait([](boost::system::error_code) {});
  second.async_wait([&](boost::system::error_code) { ended = Steady::now(); });
  // For the timers, a process that does something else is one that is stopped.
  boost::asio::post(loop, [&] {
    while (Steady::now() < began + 200ms) {
    }
  });
  loop.run();
  CHECK(ended - began >= 225ms);
}

TEST_CASE("running_timer: time goes on after a wait that was cancelled", "[base]") {
  const auto began = RunningClock::now();
  {
    boost::asio::io_context loop;
    RunningTimer timer(loop, 5ms);
    timer.async_wait([](boost::system::error_code) {});
    SECTION("by cancel()") {
      timer.cancel();
      loop.run();
    }
    SECTION("by the end of the loop") {}
  }
  const auto due = std::chrono::steady_clock::now() + 50ms;
  while (std::chrono::steady_clock::now() < due) {
  }
  CHECK(RunningClock::now() - began >= 50ms);
}

}  // namespace running_clock_test
