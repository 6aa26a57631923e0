// SPDX-License-Identifier: Apache-2.0
#include "acc/store/server.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "acc/base/descriptor.hpp"
#include "support/catch.hpp"
#include "support/in_child.hpp"
#include "support/store_client.hpp"
#include "support/store_thread.hpp"

namespace {

using acc::encode;
using acc::Op;
using acc::test::in_child;
using acc::test::kSkipped;
using acc::test::StoreClient;
using acc::test::StoreThread;

// A network that nobody else sees, in which `addresses` are ours.
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
    // The kernel drops what it has not sent yet when an answer is left unread: this much it has sent.
    value = "x";
    leaving.send({.op = Op::get_num_keys});
  }
  leaving.set("/last", value);
  leaving.leave();
  CHECK(watching.receive(1) == std::string(1, '\0'));
  CHECK(watching.get("/last") == value);
}

TEST_CASE("server: a client that is gone waits no more", "[store]") {
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

TEST_CASE("server: reset ends connections, forgets keys and keeps the port", "[store]") {
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

TEST_CASE("server: reset also ends who had connected and was not taken yet", "[store]") {
  boost::asio::io_context loop{1};
  acc::StoreServer server(loop, {});
  auto early = StoreClient::greeted(server.port());  // the loop has not run: it waits in the kernel
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
  auto server = std::make_unique<acc::StoreServer>(loop, acc::StoreServerOptions{});
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
  CHECK(reading.closed_by_server());
}

TEST_CASE("server: once somebody is allowed, strangers are closed before they are read", "[store]") {
  const int verdict = in_child([] {
    if (!enter_network_of({"10.1.0.1", "10.1.0.2", "10.1.0.3"})) return kSkipped;
    StoreThread store({.addresses = {"10.1.0.1"}});
    store.allow("10.1.0.2");
    StoreClient joined(store.port(), "10.1.0.1", "10.1.0.2");
    joined.send({.op = Op::validate, .number = acc::kStoreMagic});
    StoreClient own(store.port(), "10.1.0.1");
    own.send({.op = Op::validate, .number = acc::kStoreMagic});
    StoreClient stranger(store.port(), "10.1.0.1", "10.1.0.3");
    const bool closed = stranger.closed_by_server();
    return joined.alive() && own.alive() && closed ? 0 : 1;
  });
  if (verdict == kSkipped) {
    WARN("no network namespace can be made here: not tested");
    return;
  }
  CHECK(verdict == 0);
}
