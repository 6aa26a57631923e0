// SPDX-License-Identifier: Apache-2.0
#include "acc/store/dialer.hpp"

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "acc/store/server.hpp"
#include "support/catch.hpp"
#include "support/drive.hpp"

namespace dialer_test {

namespace {

namespace asio = boost::asio;
using acc::RunningClock;
using acc::launcher::Dialer;
using acc::launcher::StoreAddress;
using acc::launcher::StoreServer;
using asio::ip::tcp;

struct Dialed {
  bool done = false;
  bool connected = false;
  std::string reason = {};
  std::vector<std::string> failed = {};
};

std::shared_ptr<Dialer> dial(asio::io_context& loop, const StoreAddress& address, Dialed& dialed,
                             std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  auto dialer = std::make_shared<Dialer>(loop);
  dialer->start(
      address, RunningClock::now() + timeout,
      [&dialed](const std::string& reason) { dialed.failed.push_back(reason); },
      [&dialed](auto socket, const std::string& reason) {
        dialed.done = true;
        dialed.connected = socket.has_value();
        dialed.reason = reason;
      });
  return dialer;
}

// A port without a listener while the acceptor is bound.
tcp::acceptor bound(asio::io_context& loop) {
  tcp::acceptor acceptor(loop, tcp::v4());
  acceptor.bind({asio::ip::make_address("127.0.0.1"), 0});
  return acceptor;
}

}  // namespace

TEST_CASE("dialer: finds a store by v4, v6 and name", "[store]") {
  asio::io_context loop;
  const std::string host = GENERATE("127.0.0.1", "::1", "localhost");
  StoreServer server(loop, {.addresses = {"127.0.0.1", "::1"}});
  Dialed dialed;
  dial(loop, {host, server.port()}, dialed);
  acc::test::drive(loop, [&] { return dialed.done; });
  CHECK(dialed.connected);
  CHECK(dialed.failed.empty());
}

TEST_CASE("dialer: tries again until the store is there, and says why it was not", "[store]") {
  asio::io_context loop;
  tcp::acceptor acceptor = bound(loop);
  const std::uint16_t port = acceptor.local_endpoint().port();
  Dialed dialed;
  dial(loop, {"127.0.0.1", port}, dialed);
  acc::test::drive(loop, [&] { return dialed.failed.size() >= 2; });
  CHECK(dialed.failed.front() == "Connection refused");
  CHECK_FALSE(dialed.done);
  acceptor.close();
  StoreServer server(loop, {.port = port});
  acc::test::drive(loop, [&] { return dialed.done; });
  CHECK(dialed.connected);
}

TEST_CASE("dialer: time in which this process stood still is not of the deadline", "[store]") {
  asio::io_context loop;
  const tcp::acceptor acceptor = bound(loop);
  Dialed dialed;
  dial(loop, {"127.0.0.1", acceptor.local_endpoint().port()}, dialed, std::chrono::seconds(1));
  acc::test::drive(loop, [&] { return !dialed.failed.empty(); });
  acc::test::stand_still(loop, std::chrono::milliseconds(1200));
  acc::test::drive(loop, [&] { return dialed.done || dialed.failed.size() > 2; });
  CHECK_FALSE(dialed.done);
}

TEST_CASE("dialer: gives up at the deadline with the last reason", "[store]") {
  asio::io_context loop;
  const tcp::acceptor acceptor = bound(loop);
  Dialed dialed;
  dial(loop, {"127.0.0.1", acceptor.local_endpoint().port()}, dialed,
       std::chrono::milliseconds(40));  // one attempt
  acc::test::drive(loop, [&] { return dialed.done; });
  CHECK_FALSE(dialed.connected);
  CHECK(dialed.reason == "Connection refused");
}

TEST_CASE("dialer: a server that closes the connection is not a store", "[store]") {
  asio::io_context loop;
  tcp::acceptor acceptor = bound(loop);
  acceptor.listen();
  acceptor.async_accept([](const auto&, tcp::socket socket) { socket.close(); });
  Dialed dialed;
  const auto dialer = dial(loop, {"127.0.0.1", acceptor.local_endpoint().port()}, dialed);
  acc::test::drive(loop, [&] { return !dialed.failed.empty(); });
  CHECK(dialed.failed.front() == "what listens there does not answer as a store");
  dialer->cancel();
}

TEST_CASE("dialer: gives up on a server that never answers at the deadline", "[store]") {
  asio::io_context loop;
  tcp::acceptor acceptor = bound(loop);
  acceptor.listen();
  Dialed dialed;
  dial(loop, {"127.0.0.1", acceptor.local_endpoint().port()}, dialed, std::chrono::milliseconds(50));
  acc::test::drive(loop, [&] { return dialed.done; });
  CHECK(dialed.reason == "what listens there does not answer as a store");
}

TEST_CASE("dialer: calls no handler after cancel()", "[store]") {
  asio::io_context loop;
  const tcp::acceptor acceptor = bound(loop);
  Dialed dialed;
  const auto dialer = dial(loop, {"127.0.0.1", acceptor.local_endpoint().port()}, dialed);
  dialer->cancel();
  loop.run();
  CHECK_FALSE(dialed.done);
  CHECK(dialed.failed.empty());
}

TEST_CASE("dialer: an address is formatted as in a URL", "[store]") {
  CHECK(acc::launcher::to_string(StoreAddress{"node1", 29400}) == "node1:29400");
  CHECK(acc::launcher::to_string(StoreAddress{"::1", 29400}) == "[::1]:29400");
}

}  // namespace dialer_test
