// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>

#include "acc/store/server.hpp"
#include "support/catch.hpp"

using acc::launcher::Turns;

TEST_CASE("turns: tasks take turns until they are done", "[store]") {
  boost::asio::io_context loop{1};
  const auto turns = std::make_shared<Turns>(loop);
  std::string order;
  const auto task = [&](char name, int slices) {
    turns->add([&order, name, slices](Turns::Clock::time_point) mutable {
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

TEST_CASE("turns: between two slices the loop does what else is ready", "[store]") {
  boost::asio::io_context loop{1};
  const auto turns = std::make_shared<Turns>(loop);
  bool posted = false;
  bool expired = false;
  boost::asio::steady_timer timer(loop, std::chrono::milliseconds(1));
  timer.async_wait([&](const auto&) { expired = true; });
  for (int i = 0; i < 5; ++i) turns->add([&](Turns::Clock::time_point) { return !posted || !expired; });
  boost::asio::post(loop, [&] { posted = true; });
  loop.run();  // returns: tasks that never end by themselves have let both through
  CHECK(expired);
}

TEST_CASE("turns: a slice may add a task, and closing ends all", "[store]") {
  boost::asio::io_context loop{1};
  const auto turns = std::make_shared<Turns>(loop);
  int slices = 0;
  turns->add([&](Turns::Clock::time_point) {
    turns->add([&](Turns::Clock::time_point) {
      if (++slices == 3) turns->close();
      return slices < 3;
    });
    return false;
  });
  turns->add([](Turns::Clock::time_point) { return true; });
  loop.run();
  CHECK(slices == 3);
}
