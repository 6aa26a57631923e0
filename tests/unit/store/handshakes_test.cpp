// SPDX-License-Identifier: Apache-2.0
#include "acc/store/handshakes.hpp"

#include "support/catch.hpp"
#include "support/store_client.hpp"
#include "support/store_thread.hpp"

namespace handshakes_test {

namespace {

using acc::launcher::Op;
using acc::test::StoreClient;
using acc::test::StoreThread;

// Enough for a client of this test on a loaded machine, little for a test that waits for it.
constexpr auto kTimeout = std::chrono::milliseconds(300);

}  // namespace

TEST_CASE("handshakes: a client that sends nothing, or half a request, is disconnected", "[store]") {
  StoreThread store({.handshake_timeout = kTimeout});
  StoreClient silent(store.port());
  StoreClient half(store.port());
  half.send(std::string("\x00\xce", 2));
  CHECK(silent.closed_by_server());
  CHECK(half.closed_by_server());
  CHECK(store.connections() == 0);
}

TEST_CASE("handshakes: a client that has identified itself may be silent", "[store]") {
  StoreThread store({.handshake_timeout = kTimeout});
  auto quiet = StoreClient::greeted(store.port());
  REQUIRE(quiet.alive());
  StoreClient later(store.port());
  CHECK(later.closed_by_server());  // the timeout of `quiet` is over, too
  CHECK(quiet.alive());
}

TEST_CASE("handshakes: a server that was held up reads before it disconnects a client", "[store]") {
  boost::asio::io_context loop{1};
  acc::launcher::StoreServer server(loop, {.handshake_timeout = kTimeout});
  auto client = StoreClient::greeted(server.port());
  while (server.connections() == 0) loop.run_one();
  client.set("/k", "v");
  // The loop does not run while the deadline passes.
  boost::asio::io_context other{1};
  boost::asio::steady_timer(other, kTimeout * 2).wait();
  loop.run_for(kTimeout / 2);
  CHECK(server.connections() == 1);
}

TEST_CASE("handshakes: no timer outlives the server", "[store]") {
  boost::asio::io_context loop{1};
  auto server = std::make_unique<acc::launcher::StoreServer>(loop, acc::launcher::StoreServerOptions{});
  const StoreClient silent(server->port());
  while (server->connections() == 0) loop.run_one();
  server.reset();
  loop.run();  // returns: no timer is left
  SUCCEED();
}

namespace {

struct FakeConnection : acc::launcher::PendingConnection {
  bool is_pending() const override { return pending; }
  bool has_unread() override { return unread; }
  void end() override { ended = true, pending = false; }

  bool pending = true;
  bool unread = false;
  bool ended = false;
};

}  // namespace

TEST_CASE("handshakes: of too many the oldest is closed, unless it has identified itself or is about to",
          "[store]") {
  boost::asio::io_context loop{1};
  const auto handshakes =
      std::make_shared<acc::launcher::Handshakes>(loop, acc::launcher::Handshakes::Limits{.max_pending = 2});
  std::vector<std::shared_ptr<FakeConnection>> connections;
  const auto connect = [&] {
    connections.push_back(std::make_shared<FakeConnection>());
    handshakes->expect(connections.back());
  };
  connect();
  connect();
  connections[0]->pending = false;
  connect();
  CHECK_FALSE(connections[1]->ended);
  connections[1]->unread = true;
  connect();
  CHECK(connections[2]->ended);
  CHECK_FALSE(connections[1]->ended);
  CHECK_FALSE(connections[3]->ended);
  connections[1]->unread = false;
  connect();
  CHECK(connections[1]->ended);
  CHECK_FALSE(connections[0]->ended);
}

}  // namespace handshakes_test
