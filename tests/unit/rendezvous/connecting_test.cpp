// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/connecting.hpp"

#include "support/catch.hpp"
#include "support/drive.hpp"

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

struct Outcome {
  int calls = 0;
  bool connected = false;
  bool refused = false;
  std::string why = {};
};

Outcome connect_to(asio::io_context& loop, const std::string& host, std::uint16_t port) {
  Outcome outcome;
  const auto connecting = std::make_shared<Connecting>(loop);
  connecting->start(host, port, 10s, [&](const auto& socket, const std::string& why) {
    ++outcome.calls;
    outcome.connected = socket.has_value();
    outcome.refused = connecting->was_refused();
    outcome.why = why;
  });
  CHECK(outcome.calls == 0);  // never from within
  loop.run();
  return outcome;
}

}  // namespace

TEST_CASE("connecting: a node that listens", "[rendezvous]") {
  asio::io_context loop;
  asio::ip::tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
  const Outcome outcome = connect_to(loop, "127.0.0.1", acceptor.local_endpoint().port());
  CHECK(outcome.calls == 1);
  CHECK(outcome.connected);
  CHECK_FALSE(outcome.refused);
}

TEST_CASE("connecting: a node that does not", "[rendezvous]") {
  asio::io_context loop;
  std::uint16_t port = 0;
  {
    asio::ip::tcp::acceptor gone(loop, {asio::ip::address_v4::loopback(), 0});
    port = gone.local_endpoint().port();
  }
  const Outcome outcome = connect_to(loop, "127.0.0.1", port);
  CHECK(outcome.calls == 1);
  CHECK_FALSE(outcome.connected);
  CHECK(outcome.why == "Connection refused");
  CHECK(outcome.refused);
}

TEST_CASE("connecting: cancelled, it says nothing", "[rendezvous]") {
  asio::io_context loop;
  asio::ip::tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
  const auto connecting = std::make_shared<Connecting>(loop);
  int calls = 0;
  connecting->start("127.0.0.1", acceptor.local_endpoint().port(), 10s,
                    [&](const auto&, const auto&) { ++calls; });
  connecting->cancel();
  loop.run();
  CHECK(calls == 0);
}
