// SPDX-License-Identifier: Apache-2.0
#include "acc/store/connecting.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/drive.hpp"

namespace connecting_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

struct Outcome {
  int calls = 0;
  bool connected = false;
  bool refused = false;
  std::string reason = {};
};

Outcome connect_to(asio::io_context& loop, const std::string& host, std::uint16_t port,
                   const std::vector<std::string>& addresses = {}) {
  Outcome outcome;
  const auto look_up = [addresses](const std::string& name) {
    return addresses.empty() ? acc::look_up(name) : HostLookup{.addresses = addresses};
  };
  const auto connecting = std::make_shared<Connecting>(loop, look_up);
  connecting->start(host, port, 10s, [&](const auto& socket, const std::string& reason) {
    ++outcome.calls;
    outcome.connected = socket.has_value();
    outcome.refused = connecting->was_refused();
    outcome.reason = reason;
  });
  CHECK(outcome.calls == 0);  // never during the call
  loop.run();
  return outcome;
}

}  // namespace

TEST_CASE("connecting: connects to a node that listens", "[store]") {
  asio::io_context loop;
  asio::ip::tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
  const Outcome outcome = connect_to(loop, "127.0.0.1", acceptor.local_endpoint().port());
  CHECK(outcome.calls == 1);
  CHECK(outcome.connected);
  CHECK_FALSE(outcome.refused);
}

TEST_CASE("connecting: reports a refused connection", "[store]") {
  asio::io_context loop;
  std::uint16_t port = 0;
  {
    asio::ip::tcp::acceptor gone(loop, {asio::ip::address_v4::loopback(), 0});
    port = gone.local_endpoint().port();
  }
  const Outcome outcome = connect_to(loop, "127.0.0.1", port);
  CHECK(outcome.calls == 1);
  CHECK_FALSE(outcome.connected);
  CHECK(outcome.reason == "Connection refused");
  CHECK(outcome.refused);
}

TEST_CASE("connecting: calls no handler after cancel()", "[store]") {
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

namespace {

// An address that does not answer, as one behind a firewall: its queue of connections is full.
class SilentListener {
 public:
  SilentListener(asio::io_context& loop, const asio::ip::tcp::endpoint& at)
      : acceptor_(loop), waiting_(loop) {
    acceptor_.open(at.protocol());
    acceptor_.set_option(asio::socket_base::reuse_address(true));
    acceptor_.bind(at);
    acceptor_.listen(0);
    waiting_.connect(acceptor_.local_endpoint());
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  asio::ip::tcp::acceptor acceptor_;
  asio::ip::tcp::socket waiting_;
};

asio::ip::tcp::endpoint at(const char* address, std::uint16_t port = 0) {
  return {asio::ip::make_address(address), port};
}

}  // namespace

TEST_CASE("connecting: of a name with several addresses one that answers is enough", "[store]") {
  asio::io_context loop;
  const SilentListener silent(loop, at("127.0.0.1"));
  const asio::ip::tcp::acceptor acceptor(loop, at("127.0.0.3", silent.port()));
  const std::vector<std::string> addresses = {"127.0.0.1", "127.0.0.2", "127.0.0.3"};
  const Outcome outcome = connect_to(loop, "three.test", silent.port(), addresses);
  CHECK(outcome.calls == 1);
  CHECK(outcome.connected);
}

TEST_CASE("connecting: refused is what every address refuses", "[store]") {
  asio::io_context loop;
  std::uint16_t port = 0;
  {
    const asio::ip::tcp::acceptor gone(loop, at("127.0.0.1"));
    port = gone.local_endpoint().port();
  }
  const Outcome outcome = connect_to(loop, "two.test", port, {"127.0.0.1", "127.0.0.2"});
  CHECK_FALSE(outcome.connected);
  CHECK(outcome.reason == "Connection refused");
  CHECK(outcome.refused);
}

TEST_CASE("connecting: a name without an address is told", "[store]") {
  asio::io_context loop;
  const auto connecting = std::make_shared<Connecting>(
      loop, [](const std::string&) { return HostLookup{.error = "no such name"}; });
  std::string told;
  connecting->start("nowhere.test", 1, 10s, [&](const auto&, const std::string& reason) { told = reason; });
  loop.run();
  CHECK(told == "cannot resolve the name: no such name");
}

}  // namespace connecting_test
