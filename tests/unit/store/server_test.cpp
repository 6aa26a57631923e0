// SPDX-License-Identifier: Apache-2.0
#include "acc/store/server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/base/log.hpp"
#include "support/catch.hpp"
#include "support/in_child.hpp"
#include "support/skip.hpp"
#include "support/store_client.hpp"
#include "support/store_thread.hpp"

namespace server_test {

namespace {

using acc::launcher::encode;
using acc::launcher::Op;
using acc::test::in_child;
using acc::test::kSkipped;
using acc::test::StoreClient;
using acc::test::StoreThread;

// A network namespace with these `addresses`.
bool enter_network_of(const std::vector<std::string>& addresses) {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  const acc::Descriptor socket(::socket(AF_INET, SOCK_DGRAM, 0));
  bool made = true;
  for (std::size_t i = 0; i <= addresses.size(); ++i) {
    ifreq request = {};
    const std::string name = i == 0 ? "lo" : "lo:" + std::to_string(i);
    name.copy(request.ifr_name, sizeof request.ifr_name - 1);
    if (i > 0) {
      auto* address = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
      address->sin_family = AF_INET;
      ::inet_pton(AF_INET, addresses[i - 1].c_str(), &address->sin_addr);
      made = made && ::ioctl(socket.get(), SIOCSIFADDR, &request) == 0;
    }
    request.ifr_flags = IFF_UP;
    made = made && ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
  }
  return made;
}

}  // namespace

TEST_CASE("server: clients share keys", "[store]") {
  StoreThread store;
  auto one = StoreClient::greeted(store.port());
  auto two = StoreClient::greeted(store.port());
  one.set("/k", "value");
  REQUIRE(one.alive());
  CHECK(two.get("/k") == "value");
}

TEST_CASE("server: a client is woken by what another sets", "[store]") {
  StoreThread store;
  auto waiting = StoreClient::greeted(store.port());
  waiting.send({.op = Op::wait, .keys = {"/k"}});
  auto setting = StoreClient::greeted(store.port());
  setting.set("/k", "1");
  CHECK(waiting.receive(1) == std::string(1, '\0'));
  CHECK(waiting.get("/k") == "1");
}

TEST_CASE("server: a hundred clients are woken by one key", "[store]") {
  StoreThread store;
  std::vector<StoreClient> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(StoreClient::greeted(store.port()));
    clients.back().send({.op = Op::wait, .keys = {"/go"}});
  }
  CHECK(clients.back().alive());
  auto setting = StoreClient::greeted(store.port());
  setting.set("/go", "1");
  int woken = 0;
  for (StoreClient& client : clients) woken += client.receive(1) == std::string(1, '\0') ? 1 : 0;
  CHECK(woken == 100);
}

TEST_CASE("server: a wait and its end in one segment are answered in order", "[store]") {
  StoreThread store;
  auto client = StoreClient::greeted(store.port());
  client.send(encode({.op = Op::wait, .keys = {"/k"}}) +
              encode({.op = Op::set, .keys = {"/k"}, .values = {"v"}}) + encode({.op = Op::cancel_wait}) +
              encode({.op = Op::get, .keys = {"/k"}}));
  CHECK(client.receive(2) == std::string("\0\1", 2));
  CHECK(client.receive_text() == "v");
}

TEST_CASE("server: what a client sets before it leaves is kept", "[store]") {
  StoreThread store;
  auto watching = StoreClient::greeted(store.port());
  watching.send({.op = Op::wait, .keys = {"/last"}});
  auto leaving = StoreClient::greeted(store.port());
  std::string value;
  SECTION("much, and nothing asked") {
    value = std::string(1'000'000, 'x');
  }
  SECTION("little, and an answer not read") {
    // When replies are unread the kernel drops what it has not sent yet: this much it has sent.
    value = "x";
    leaving.send({.op = Op::get_num_keys});
  }
  leaving.set("/last", value);
  leaving.leave();
  CHECK(watching.receive(1) == std::string(1, '\0'));
  CHECK(watching.get("/last") == value);
}

TEST_CASE("server: the wait of a disconnected client ends", "[store]") {
  StoreThread store;
  auto gone = StoreClient::greeted(store.port());
  gone.send({.op = Op::wait, .keys = {"/q"}});
  REQUIRE(gone.alive());
  gone.end_requests();
  REQUIRE(gone.closed_by_server());
  auto next = StoreClient::greeted(store.port());
  next.send({.op = Op::wait, .keys = {"/q"}});
  REQUIRE(next.alive());
  auto pushing = StoreClient::greeted(store.port());
  pushing.send({.op = Op::queue_push, .keys = {"/q"}, .values = {"v"}});
  CHECK(next.receive(1) == std::string(1, '\0'));
}

TEST_CASE("server: reset closes connections, removes keys and keeps the port", "[store]") {
  StoreThread store;
  const std::uint16_t port = store.port();
  auto old = StoreClient::greeted(port);
  old.set("/k", "old");
  old.send({.op = Op::queue_push, .keys = {"/q"}, .values = {"old"}});
  auto waiting = StoreClient::greeted(port);
  waiting.send({.op = Op::wait, .keys = {"/later"}});
  REQUIRE(old.alive());
  REQUIRE(waiting.alive());
  store.reset();
  CHECK(store.connections() == 0);
  CHECK(store.port() == port);
  CHECK(old.closed_by_server());
  CHECK(waiting.closed_by_server());
  auto fresh = StoreClient::greeted(port);
  CHECK(fresh.get("/k").empty());
  fresh.send({.op = Op::queue_len, .keys = {"/q"}});
  CHECK(fresh.receive_number() == 0);
  fresh.set("/later", "1");
  CHECK(fresh.alive());
}

TEST_CASE("server: reset also closes connections in the backlog", "[store]") {
  boost::asio::io_context loop{1};
  acc::launcher::StoreServer server(loop, {});
  auto early = StoreClient::greeted(server.port());  // the loop has not run: it is in the backlog
  early.set("/k", "old");
  server.reset();
  CHECK(early.closed_by_server());
  loop.poll();
  CHECK(server.connections() == 0);
}

TEST_CASE("server: counts its connections", "[store]") {
  StoreThread store;
  CHECK(store.connections() == 0);
  auto one = StoreClient::greeted(store.port());
  REQUIRE(one.alive());
  CHECK(store.connections() == 1);
  one.end_requests();
  REQUIRE(one.closed_by_server());
  CHECK(store.connections() == 0);
}

TEST_CASE("server: can be destroyed while clients are being served", "[store]") {
  boost::asio::io_context loop{1};
  auto server = std::make_unique<acc::launcher::StoreServer>(loop, acc::launcher::StoreServerOptions{});
  auto waiting = StoreClient::greeted(server->port());
  waiting.send({.op = Op::wait, .keys = {"/k"}});
  while (server->connections() == 0) loop.run_one();
  auto reading = StoreClient::greeted(server->port());
  reading.send({.op = Op::get_num_keys});
  SECTION("and the loop goes on") {
    server.reset();
    loop.run();
  }
  SECTION("and handlers are ready to run") {
    loop.run_one();
    server.reset();
    loop.poll();
  }
  SECTION("and the loop never runs again") {
    server.reset();
  }
  CHECK(waiting.closed_by_server());
  CHECK(reading.receive(9).size() < 9);  // at most after its reply
}

namespace {

// A prefix on loopback makes all its addresses local, as 127.0.0.0/8: clients can connect from any.
void check_in_network(int (*action)()) {
  const int verdict = in_child([action] { return enter_network_of({"10.1.0.1"}) ? action() : kSkipped; });
  if (verdict == kSkipped) {
    acc::test::skip("no network namespace can be made");
    return;
  }
  CHECK(verdict == 0);
}

StoreClient greeted_from(std::uint16_t port, const std::string& source) {
  StoreClient client(port, "10.1.0.1", source);
  client.send({.op = Op::validate, .number = acc::launcher::kStoreMagic});
  return client;
}

bool takes_value(StoreClient& client, std::size_t bytes) try {
  client.set("/long", std::string(bytes, 'x'));
  return client.alive();
} catch (const std::runtime_error&) {
  return false;
}

// Sends half of a value of `bytes`, and waits for the server to have enough of it.
bool ends_in_half_a_value(StoreClient& client, std::size_t bytes) try {
  client.send(
      encode({.op = Op::set, .keys = {"/half"}, .values = {std::string(bytes, 'x')}}).substr(0, bytes / 2));
  return client.closed_by_server();
} catch (const std::runtime_error&) {
  return true;
}

}  // namespace

TEST_CASE("server: a refused client is closed before it is read", "[store]") {
  check_in_network([] {
    StoreThread store({.addresses = {"10.1.0.1"}});
    store.serve({.nodes = {"10.1.0.2"}, .others = acc::launcher::StoreClients::Others::refused});
    auto node = greeted_from(store.port(), "10.1.0.2");
    auto local = greeted_from(store.port(), "");
    StoreClient stranger(store.port(), "10.1.0.1", "10.1.0.3");
    const bool closed = stranger.closed_by_server();
    return node.alive() && local.alive() && closed ? 0 : 1;
  });
}

TEST_CASE("server: an address that is refused is named once, and of many only some", "[store]") {
  check_in_network([] {
    std::string warnings;
    const acc::log::ConsoleRedirect console([&](std::string_view lines) { warnings += lines; });
    acc::log::open({.level = acc::log::Level::warn});
    boost::asio::io_context loop{1};
    acc::launcher::StoreServer server(loop, {.addresses = {"::"}});
    server.serve({.nodes = {"10.1.0.2"}, .others = acc::launcher::StoreClients::Others::refused});
    const auto call_from = [&](const std::string& source) {
      StoreClient client(server.port(), "10.1.0.1", source);
      while (client.alive_so_far()) loop.poll_one();
    };
    for (int i = 0; i < 3; ++i) call_from("10.1.0.3");
    const std::string first = warnings;
    if (first !=
        fmt::format("acc: warning: a connection from 10.1.0.3 to the store at port {} is refused: no "
                    "node of this round has that address\n",
                    server.port()))
      return 1;
    for (int i = 4; i < 100; ++i) call_from("10.1.0." + std::to_string(i));
    const auto lines = std::ranges::count(warnings, '\n');
    return lines > 1 && lines < 20 ? 0 : 2;
  });
}

TEST_CASE("server: accepts long values of nodes, but not of strangers", "[store]") {
  check_in_network([] {
    StoreThread store({.addresses = {"10.1.0.1"}, .max_stranger_bytes = 1U << 20U});
    store.serve({.nodes = {"10.1.0.2"}, .others = acc::launcher::StoreClients::Others::strangers});
    auto node = greeted_from(store.port(), "10.1.0.2");
    auto stranger = greeted_from(store.port(), "10.1.0.3");
    if (!takes_value(node, 4U << 20U)) return 1;
    if (!ends_in_half_a_value(stranger, 4U << 20U)) return 2;
    // Small values are accepted.
    auto small = greeted_from(store.port(), "10.1.0.3");
    small.set("/k", "v");
    return small.get("/k") == "v" ? 0 : 3;
  });
}

TEST_CASE("server: strangers share one limit of memory in connections", "[store]") {
  check_in_network([] {
    StoreThread store({.addresses = {"10.1.0.1"}, .max_stranger_bytes = 1U << 20U});
    store.serve({.others = acc::launcher::StoreClients::Others::strangers});
    acc::launcher::Request wait = {.op = Op::wait};
    for (int i = 0; i < 1000; ++i) wait.keys.push_back("/missing" + std::to_string(i));
    auto first = greeted_from(store.port(), "10.1.0.3");
    first.send(wait);
    if (!first.alive()) return 1;
    std::vector<StoreClient> later;
    for (int i = 0; i < 10; ++i) {
      later.push_back(greeted_from(store.port(), "10.1.0.4"));
      later.back().send(wait);
      later.back().send({.op = Op::ping, .number = 1});
      if (later.back().receive(4).size() != 4) return 2;
    }
    // The one that has held much for longest was closed.
    return first.closed_by_server() && later.back().alive() ? 0 : 3;
  });
}

TEST_CASE("server: strangers share one limit of memory in the store", "[store]") {
  check_in_network([] {
    StoreThread store({.addresses = {"10.1.0.1"}, .max_stranger_bytes = 100'000});
    store.serve({.nodes = {"10.1.0.2"}, .others = acc::launcher::StoreClients::Others::strangers});
    auto stranger = greeted_from(store.port(), "10.1.0.3");
    for (int i = 0; i < 9; ++i) stranger.set("/" + std::to_string(i), std::string(10'000, 'x'));
    if (!stranger.alive()) return 1;
    stranger.set("/9", std::string(10'000, 'x'));
    if (!stranger.closed_by_server()) return 2;
    auto node = greeted_from(store.port(), "10.1.0.2");
    node.set("/9", std::string(200'000, 'x'));
    return node.alive() && node.get("/8").size() == 10'000 ? 0 : 3;
  });
}

TEST_CASE("server: of too many strangers the one idle for longest is closed", "[store]") {
  check_in_network([] {
    StoreThread store({.addresses = {"10.1.0.1"}, .max_strangers = 2});
    store.serve({.others = acc::launcher::StoreClients::Others::strangers});
    auto first = greeted_from(store.port(), "10.1.0.3");
    auto second = greeted_from(store.port(), "10.1.0.3");
    if (!first.alive() || !second.alive() || !first.alive()) return 1;
    auto third = greeted_from(store.port(), "10.1.0.3");
    auto local = greeted_from(store.port(), "");
    return third.alive() && local.alive() && second.closed_by_server() && first.alive() ? 0 : 2;
  });
}

TEST_CASE("server: of too many pending strangers the oldest is closed, and no node", "[store]") {
  check_in_network([] {
    StoreThread store({.addresses = {"10.1.0.1"}, .max_pending_strangers = 2});
    store.serve({.nodes = {"10.1.0.2"}, .others = acc::launcher::StoreClients::Others::strangers});
    StoreClient node(store.port(), "10.1.0.1", "10.1.0.2");
    StoreClient first(store.port(), "10.1.0.1", "10.1.0.3");
    StoreClient second(store.port(), "10.1.0.1", "10.1.0.3");
    StoreClient third(store.port(), "10.1.0.1", "10.1.0.3");
    if (!first.closed_by_server()) return 1;
    for (StoreClient* one : {&node, &second, &third}) {
      one->send({.op = Op::validate, .number = acc::launcher::kStoreMagic});
      if (!one->alive()) return 2;
    }
    return 0;
  });
}

TEST_CASE("server: another user of this machine is a stranger", "[store]") {
  if (::geteuid() != 0) {
    acc::test::skip("this user is not root");
    return;
  }
  StoreThread store({.max_stranger_bytes = 1U << 20U});
  auto local = StoreClient::greeted(store.port());
  CHECK(takes_value(local, 4U << 20U));
  constexpr uid_t kNobody = 65534;
  ::setfsuid(kNobody);  // sockets of this thread belong to that user
  auto other = StoreClient::greeted(store.port());
  ::setfsuid(0);
  CHECK(other.alive());
  CHECK(ends_in_half_a_value(other, 4U << 20U));
}

TEST_CASE("server: a client that has closed before it is accepted is served as a stranger", "[store]") {
  boost::asio::io_context loop{1};
  acc::launcher::StoreServer server(loop, {.max_stranger_bytes = 100'000});
  const auto set_and_end = [&](const std::string& key, std::size_t bytes) {
    auto client = StoreClient::greeted(server.port());
    client.set(key, std::string(bytes, 'x'));
    client.leave();
    while (server.connections() == 0) loop.run_one();
    while (server.connections() > 0) loop.run_one();
  };
  set_and_end("/short", 10);
  CHECK(server.get("/short").has_value());
  set_and_end("/long", 200'000);
  CHECK_FALSE(server.get("/long").has_value());
}

TEST_CASE("server: no client can change what the agent has set", "[store]") {
  boost::asio::io_context loop{1};
  acc::launcher::StoreServer server(loop, {});
  server.set("/agent", "v");
  auto client = StoreClient::greeted(server.port());
  client.set("/agent", "w");
  client.end_requests();
  loop.poll();
  while (server.connections() > 0) loop.run_one();
  CHECK(server.get("/agent") == "v");
  CHECK(server.get("/other") == std::nullopt);
}

}  // namespace server_test
