// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>

#include "acc/store/server.hpp"
#include "support/catch.hpp"

namespace server_round_robin_test {

using acc::launcher::RoundRobin;

TEST_CASE("round_robin: tasks take turns until they are done", "[store]") {
  boost::asio::io_context loop{1};
  const auto scheduler = std::make_shared<RoundRobin>(loop);
  std::string order;
  const auto task = [&](char name, int slices) {
    scheduler->add([&order, name, slices](RoundRobin::Clock::time_point) mutable {
      order += name;
      return --slices > 0;
    });
  };
  task('a', 3);
  task('b', 1);
  task('c', 2);
  CHECK(order.empty());
  loop.run();
  CHECK(order == "abcaca");
}

TEST_CASE("round_robin: other ready handlers run between two slices", "[store]") {
  boost::asio::io_context loop{1};
  const auto scheduler = std::make_shared<RoundRobin>(loop);
  bool posted = false;
  bool expired = false;
  boost::asio::steady_timer timer(loop, std::chrono::milliseconds(1));
  timer.async_wait([&](const auto&) { expired = true; });
  for (int i = 0; i < 5; ++i)
    scheduler->add([&](RoundRobin::Clock::time_point) { return !posted || !expired; });
  boost::asio::post(loop, [&] { posted = true; });
  loop.run();  // returns: endless tasks did not block the two handlers
  CHECK(expired);
}

TEST_CASE("round_robin: a slice may add a task, and close() ends all", "[store]") {
  boost::asio::io_context loop{1};
  const auto scheduler = std::make_shared<RoundRobin>(loop);
  int slices = 0;
  scheduler->add([&](RoundRobin::Clock::time_point) {
    scheduler->add([&](RoundRobin::Clock::time_point) {
      if (++slices == 3) scheduler->close();
      return slices < 3;
    });
    return false;
  });
  scheduler->add([](RoundRobin::Clock::time_point) { return true; });
  loop.run();
  CHECK(slices == 3);
}

}  // namespace server_round_robin_test
