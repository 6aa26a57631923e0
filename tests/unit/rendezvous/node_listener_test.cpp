// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/node_listener.hpp"

#include <boost/asio/write.hpp>

#include "support/catch.hpp"
#include "support/drive.hpp"

namespace node_listener_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

struct Caller {
  Caller(asio::io_context& loop, std::uint16_t port) {
    asio::ip::tcp::socket socket(loop);
    socket.connect({asio::ip::address_v4::loopback(), port});
    connection = std::make_shared<NodeConnection>(std::move(socket), 10s);
    connection->set_handlers([this](NodeMessage message) { received.push_back(std::move(message)); },
                             [this](const ConnectionLoss&) { lost = true; });
    connection->start();
  }
  std::shared_ptr<NodeConnection> connection;
  std::vector<NodeMessage> received = {};
  bool lost = false;
};

struct ListeningNode {
  // Connected, and silent.
  asio::ip::tcp::socket connect() {
    asio::ip::tcp::socket socket(loop);
    socket.connect({asio::ip::address_v4::loopback(), listener.port()});
    return socket;
  }

  asio::io_context loop;
  std::vector<std::shared_ptr<Member>> members = {};
  NodeListener listener{
      loop, {"127.0.0.1"}, "job7",
      {},   10s,           [this](std::shared_ptr<Member> member) {
                          members.push_back(std::move(member)); }};
};

}  // namespace

TEST_CASE("node_listener: a node of the run is passed on with its first messages", "[rendezvous]") {
  ListeningNode node;
  Caller caller(node.loop, node.listener.port());
  caller.connection->send(Hello{.run_id = "job7", .node = {.host = "node1"}});
  caller.connection->send(Join{7});
  test::drive(node.loop, [&] { return !node.members.empty() && !node.members[0]->messages.empty(); });
  CHECK(node.members[0]->hello.node.host == "node1");
  CHECK(node.members[0]->messages == std::vector<NodeMessage>{Join{7}});
}

TEST_CASE("node_listener: who has reset the connection before it is accepted is not heard", "[rendezvous]") {
  ListeningNode node;
  asio::ip::tcp::socket socket = node.connect();
  asio::write(socket, asio::buffer(encode(Hello{.run_id = "job7", .node = {.host = "nowhere"}})));
  socket.set_option(asio::socket_base::linger(true, 0));
  socket.close();
  Caller caller(node.loop, node.listener.port());
  caller.connection->send(Hello{.run_id = "job7", .node = {.host = "node1"}});
  test::drive(node.loop, [&] { return !node.members.empty(); });
  CHECK(node.members[0]->hello.node.host == "node1");
}

TEST_CASE("node_listener: a node of another run is refused with the reason", "[rendezvous]") {
  ListeningNode node;
  Caller caller(node.loop, node.listener.port());
  caller.connection->send(Hello{.run_id = "job8"});
  test::drive(node.loop, [&] { return caller.lost; });
  REQUIRE(caller.received.size() == 1);
  CHECK(std::get<RoundEnds>(caller.received[0]).verdict.text == "this host runs another job, not 'job8'");
  CHECK(node.members.empty());
}

TEST_CASE("node_listener: a connection without a Hello is refused", "[rendezvous]") {
  ListeningNode node;
  Caller caller(node.loop, node.listener.port());
  caller.connection->send(Join{1});
  test::drive(node.loop, [&] { return caller.lost; });
  CHECK(caller.received.empty());
  CHECK(node.members.empty());
}

namespace {

bool is_closed(asio::ip::tcp::socket& socket) {
  char byte = 0;
  boost::system::error_code error;
  socket.non_blocking(true);
  while (!error) socket.read_some(asio::buffer(&byte, 1), error);
  return error != asio::error::would_block;
}

}  // namespace

TEST_CASE("node_listener: a Hello of more than 64 KiB is refused", "[rendezvous]") {
  ListeningNode node;
  asio::ip::tcp::socket caller = node.connect();
  const std::string text(65U << 10U, 'x');
  bool refused = false;
  asio::async_write(caller, asio::buffer(text), [](const auto&, std::size_t) {});
  test::drive(node.loop, [&] { return refused = refused || is_closed(caller); });
  CHECK(node.members.empty());
}

TEST_CASE("node_listener: a long message before the node takes part in a round ends its connection",
          "[rendezvous]") {
  ListeningNode node;
  Caller caller(node.loop, node.listener.port());
  caller.connection->send(Hello{.run_id = "job7"});
  SECTION("before") {
    caller.connection->send(WorkerFailed{1, {.failure = std::string(100U << 10U, 'x')}});
    test::drive(node.loop, [&] { return caller.lost; });
    CHECK(node.members.at(0)->messages.empty());
  }
  SECTION("after") {
    test::drive(node.loop, [&] { return !node.members.empty(); });
    node.members[0]->connection->trust();
    caller.connection->send(WorkerFailed{1, {.failure = std::string(3U << 20U, 'x')}});
    test::drive(node.loop, [&] { return !node.members[0]->messages.empty(); });
    CHECK_FALSE(caller.lost);
  }
}

TEST_CASE("node_listener: at most 64 silent connections wait, and the oldest is closed first",
          "[rendezvous]") {
  ListeningNode node;
  std::vector<asio::ip::tcp::socket> callers;
  for (int i = 0; i < 65; ++i) callers.push_back(node.connect());
  test::drive(node.loop, [&] { return is_closed(callers.front()); });
  for (std::size_t i = 1; i < callers.size(); ++i) CHECK_FALSE(is_closed(callers[i]));
}

TEST_CASE("node_listener: a thousand nodes that connect at once are all accepted, after silent ones",
          "[rendezvous]") {
  ListeningNode node;
  std::vector<asio::ip::tcp::socket> silent;
  for (int i = 0; i < 64; ++i) silent.push_back(node.connect());
  const std::string hello = encode(Hello{.run_id = "job7"});
  for (int i = 0; i < 1000; ++i) {
    asio::ip::tcp::socket caller = node.connect();
    asio::write(caller, asio::buffer(hello));
  }
  test::drive(node.loop, [&] { return node.members.size() == 1000; });
}

TEST_CASE("node_listener: a node that sends many messages before it is handled is dropped", "[rendezvous]") {
  ListeningNode node;
  Caller caller(node.loop, node.listener.port());
  caller.connection->send(Hello{.run_id = "job7"});
  for (int i = 0; i < 100; ++i) caller.connection->send(Join{1});
  test::drive(node.loop, [&] { return caller.lost; });
  CHECK(node.members.at(0)->messages.size() < 20);
}

}  // namespace node_listener_test
