// SPDX-License-Identifier: Apache-2.0
#include "acc/store/listener.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <set>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "support/catch.hpp"
#include "support/no_more_descriptors.hpp"
#include "support/skip.hpp"
#include "support/store_client.hpp"

namespace listener_test {

namespace {

using acc::launcher::listen_on;
using acc::test::NoMoreDescriptors;
using acc::test::open_descriptors;
using acc::test::StoreClient;
using Sockets = std::vector<boost::asio::ip::tcp::socket>;

bool has_v6() {
  boost::asio::io_context loop{1};
  try {
    listen_on(loop, {"::1"}, 0);
    return true;
  } catch (const acc::Error&) {
    return false;
  }
}

acc::Error error_of(const std::vector<std::string>& addresses, std::uint16_t port) {
  boost::asio::io_context loop{1};
  try {
    listen_on(loop, addresses, port);
  } catch (const acc::Error& error) {
    return error;
  }
  throw std::runtime_error("no error");
}

}  // namespace

TEST_CASE("listener: passes on connections", "[store]") {
  boost::asio::io_context loop{1};
  const auto listeners = listen_on(loop, {"127.0.0.1"}, 0);
  Sockets taken;
  listeners.front()->start([&](auto socket) { taken.push_back(std::move(socket)); });
  const StoreClient one(listeners.front()->port());
  const StoreClient two(listeners.front()->port());
  while (taken.size() < 2) loop.run_one();
  CHECK(taken.size() == 2);
}

TEST_CASE("listener: several addresses share one port", "[store]") {
  std::vector<std::string> addresses = {"127.0.0.1", "127.0.0.2", "127.0.0.1"};
  if (has_v6()) addresses.emplace_back("::1");
  boost::asio::io_context loop{1};
  const auto listeners = listen_on(loop, addresses, 0);
  REQUIRE(listeners.size() == addresses.size() - 1);  // one was given twice
  for (const auto& listener : listeners) {
    CHECK(listener->port() == listeners.front()->port());
    listener->start([](auto) {});
  }
  for (const std::string& address : addresses) {
    CHECK_NOTHROW(StoreClient(listeners.front()->port(), address));
  }
}

TEST_CASE("listener: :: includes v4, unless a v4 address is given", "[store]") {
  if (!has_v6()) {
    acc::test::skip("no IPv6");
    return;
  }
  boost::asio::io_context loop{1};
  const auto both = listen_on(loop, {"::"}, 0);
  CHECK_NOTHROW(StoreClient(both.front()->port(), "127.0.0.1"));
  CHECK_NOTHROW(StoreClient(both.front()->port(), "::1"));
  CHECK(listen_on(loop, {"::", "0.0.0.0"}, 0).size() == 2);
}

TEST_CASE("listener: a port in use is an error that names it", "[store]") {
  boost::asio::io_context loop{1};
  const auto first = listen_on(loop, {"127.0.0.1"}, 0);
  const std::uint16_t port = first.front()->port();
  const acc::Error error = error_of({"127.0.0.1"}, port);
  CHECK(error.kind() == acc::ErrorKind::system);
  CHECK(error.problems().front().where == "127.0.0.1:" + std::to_string(port));
  CHECK(error.problems().front().what == "the store cannot listen: Address already in use");
  CHECK(error.problems().front().hint == "choose another port, or 0 for a free one");
}

TEST_CASE("listener: an address of another machine is an error that names it", "[store]") {
  const acc::Error error = error_of({"192.0.2.1"}, 29500);
  CHECK(error.kind() == acc::ErrorKind::system);
  CHECK(error.problems().front().where == "192.0.2.1:29500");
}

TEST_CASE("listener: an invalid address is a usage error", "[store]") {
  const acc::Error error = error_of({"127.0.0.1", "localhost"}, 0);
  CHECK(error.kind() == acc::ErrorKind::usage);
  CHECK(error.problems().front().where == "'localhost'");
  CHECK(error_of({}, 0).kind() == acc::ErrorKind::usage);
}

TEST_CASE("listener: child processes inherit no socket", "[store]") {
  const std::set<int> before = open_descriptors();
  boost::asio::io_context loop{1};
  const auto listeners = listen_on(loop, {"127.0.0.1"}, 0);
  Sockets taken;
  listeners.front()->start([&](auto socket) { taken.push_back(std::move(socket)); });
  const StoreClient client(listeners.front()->port());
  while (taken.empty()) loop.run_one();
  int added = 0;
  for (const int fd : open_descriptors()) {
    if (before.contains(fd)) continue;
    ++added;
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) == FD_CLOEXEC);
  }
  CHECK(added >= 4);  // the listener, the connection's two ends, and what the loop needs
}

TEST_CASE("listener: without a free descriptor it waits, and then continues", "[store]") {
  boost::asio::io_context loop{1};
  const auto listeners = listen_on(loop, {"127.0.0.1"}, 0);
  Sockets taken;
  listeners.front()->start([&](auto socket) { taken.push_back(std::move(socket)); });
  std::string warnings;
  const acc::log::ConsoleRedirect console([&](std::string_view lines) { warnings += lines; });
  acc::log::open({.level = acc::log::Level::warn});
  // UBSan needs a descriptor to check an object of a new type: it has checked the loop's, fmt's and the
  // log's, and Catch's are outside.
  loop.poll();
  acc::log::write(acc::log::Level::warn, fmt::format("{} descriptors", 0));
  warnings.clear();
  const StoreClient client(listeners.front()->port());
  std::size_t woken = 0;
  std::size_t busy = 0;
  bool waits = false;
  {
    const NoMoreDescriptors limit;
    // One wake-up, then the pause. A busy loop would have a ready handler each time.
    woken = loop.run_one();
    for (int i = 0; i < 1000; ++i) busy += loop.poll_one();
    waits = taken.empty();
  }
  CHECK(woken == 1);
  CHECK(busy < 100);
  CHECK(waits);
  while (taken.empty()) loop.run_one();
  CHECK(taken.size() == 1);
  acc::log::open({.level = acc::log::Level::off});
  const std::string address = "127.0.0.1:" + std::to_string(listeners.front()->port());

  CHECK(warnings.starts_with("acc: warning: connections to " + address + " wait: Too many open files ("));
  CHECK(warnings.ends_with(" for this process; raise the hard limit: ulimit -Hn)\n"));
  CHECK(std::ranges::count(warnings, '\n') == 1);
}

TEST_CASE("listener: can be closed and destroyed at any time", "[store]") {
  boost::asio::io_context loop{1};
  auto listeners = listen_on(loop, {"127.0.0.1"}, 0);
  int taken = 0;
  listeners.front()->start([&](auto) { ++taken; });
  const StoreClient client(listeners.front()->port());
  listeners.front()->close();
  listeners.clear();
  loop.run();
  CHECK(taken == 0);
}

}  // namespace listener_test
