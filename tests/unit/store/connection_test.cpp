// SPDX-License-Identifier: Apache-2.0
// Connections with arbitrary clients.
#include "acc/store/connection.hpp"

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "acc/store/listener.hpp"
#include "acc/store/server.hpp"
#include "support/catch.hpp"
#include "support/store_client.hpp"
#include "support/store_thread.hpp"

namespace connection_test {

namespace {

using acc::launcher::encode;
using acc::launcher::Op;
using acc::test::StoreClient;
using acc::test::StoreThread;

std::string number(std::uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

using Outcome = acc::launcher::Service::Outcome;

/// Throws bad_alloc for a `get`, and works on `list_keys` until a `ping` has arrived.
class OddOwner : public acc::launcher::Connection::Owner {
 public:
  explicit OddOwner(boost::asio::io_context& loop)
      : scheduler_(std::make_shared<acc::launcher::RoundRobin>(loop)) {}

  Outcome carry_out(acc::launcher::ClientId, acc::launcher::Work& work,
                    acc::launcher::Replies& replies) override {
    if (work.request.op == Op::get) throw std::bad_alloc();
    pinged = pinged || work.request.op == Op::ping;
    if (work.request.op == Op::list_keys) {
      if (!pinged) return Outcome::more;
      replies.add_i64(0);
    }
    return Outcome::done;
  }
  void closed(acc::launcher::ClientId) override { ++ended; }
  void schedule(std::shared_ptr<acc::launcher::Connection> connection) override {
    scheduler_->add([connection](auto until) { return connection->work_until(until); });
  }
  void holds(acc::launcher::ClientId, std::size_t) override {}
  std::span<char> scratch() override { return room_; }

  int ended = 0;
  bool pinged = false;

 private:
  std::shared_ptr<acc::launcher::RoundRobin> scheduler_;
  std::vector<char> room_ = std::vector<char>(4096);
};

struct OddStore {
  OddStore() {
    listeners.front()->start([this](auto socket) {
      connections.push_back(std::make_shared<acc::launcher::Connection>(std::move(socket), 0, owner,
                                                                        acc::launcher::Connection::Limits{}));
      connections.back()->start();
    });
  }
  StoreClient greeted() const { return StoreClient::greeted(listeners.front()->port()); }

  boost::asio::io_context loop{1};
  OddOwner owner{loop};
  std::vector<std::shared_ptr<acc::launcher::Listener>> listeners =
      acc::launcher::listen_on(loop, {"127.0.0.1"}, 0);
  std::vector<std::shared_ptr<acc::launcher::Connection>> connections = {};
};

}  // namespace

TEST_CASE("connection: a request without enough memory ends it", "[store]") {
  OddStore store;
  auto client = store.greeted();
  client.send({.op = Op::get, .keys = {"/k"}});
  while (store.owner.ended == 0) store.loop.run_one();
  CHECK(client.closed_by_server());
  CHECK(store.owner.ended == 1);
}

TEST_CASE("connection: long requests delay no other client, and keep their order", "[store]") {
  OddStore store;
  auto busy = store.greeted();
  busy.send(encode({.op = Op::list_keys}) +
            encode({.op = Op::validate, .number = acc::launcher::kStoreMagic}));
  while (store.connections.empty()) store.loop.run_one();
  for (int i = 0; i < 10; ++i) store.loop.run_one();
  auto other = store.greeted();
  other.send({.op = Op::ping, .number = 1});
  while (!store.owner.pinged) store.loop.run_one();
  // The end of a wait is not sent within a reply.
  store.connections.front()->wake();
  store.loop.poll();
  CHECK(busy.receive_number() == 0);
  CHECK(busy.receive(1) == std::string(1, '\0'));
  for (const auto& connection : store.connections) connection->close();
}

TEST_CASE("connection: invalid bytes end only their own connection", "[store]") {
  StoreThread store;
  auto good = StoreClient::greeted(store.port());
  good.set("/k", "v");
  SECTION("wrong magic") {
    StoreClient bad(store.port());
    bad.send({.op = Op::validate, .number = 1});
    CHECK(bad.closed_by_server());
  }
  SECTION("no validate") {
    StoreClient bad(store.port());
    bad.send("GET / HTTP/1.1\r\n\r\n");
    CHECK(bad.closed_by_server());
  }
  SECTION("unknown operation") {
    auto bad = StoreClient::greeted(store.port());
    bad.send("\x13");
    CHECK(bad.closed_by_server());
  }
  SECTION("a length that no memory could hold") {
    auto bad = StoreClient::greeted(store.port());
    bad.send("\x03" + number(~std::uint64_t{0}));
    CHECK(bad.closed_by_server());
  }
  SECTION("too many keys") {
    auto bad = StoreClient::greeted(store.port());
    bad.send("\x06" + number(std::uint64_t{1} << 40U));
    CHECK(bad.closed_by_server());
  }
  SECTION("a count of what is no number") {
    auto bad = StoreClient::greeted(store.port());
    bad.set("/text", "apples");
    bad.send({.op = Op::add, .keys = {"/text"}, .number = 1});
    CHECK(bad.closed_by_server());
  }
  SECTION("a connection reset") {
    auto bad = StoreClient::greeted(store.port());
    bad.send("\x01" + number(5) + "/k");
    bad.leave_rudely();
  }
  CHECK(good.get("/k") == "v");
}

TEST_CASE("connection: requests before an invalid one are answered", "[store]") {
  StoreThread store;
  auto client = StoreClient::greeted(store.port());
  client.send(encode({.op = Op::get_num_keys}) + "\x13");
  CHECK(client.receive_number() == 0);
  CHECK(client.closed_by_server());
}

TEST_CASE("connection: a client that sends nothing or half a request delays no other", "[store]") {
  StoreThread store;
  const StoreClient silent(store.port());
  StoreClient half(store.port());
  half.send(std::string("\x00\xce", 2));
  auto claiming = StoreClient::greeted(store.port());
  claiming.send("\x01" + number(1) + "k" + number(1U << 30U) + "x");
  auto good = StoreClient::greeted(store.port());
  good.set("/k", "v");
  CHECK(good.get("/k") == "v");
}

TEST_CASE("connection: a request may come byte by byte, validate too", "[store]") {
  StoreThread store;
  StoreClient client(store.port());
  const std::string bytes = encode({.op = Op::validate, .number = acc::launcher::kStoreMagic}) +
                            encode({.op = Op::set, .keys = {"/k"}, .values = {"v"}}) +
                            encode({.op = Op::get, .keys = {"/k"}});
  for (const char byte : bytes) client.send(std::string(1, byte));
  CHECK(client.receive_text() == "v");
}

TEST_CASE("connection: long keys, values and lists work", "[store]") {
  StoreThread store;
  auto client = StoreClient::greeted(store.port());
  const std::string key(1U << 20U, 'k');
  const std::string value(20U << 20U, 'v');
  client.set(key, value);
  CHECK(client.get(key) == value);
  acc::launcher::Request many = {.op = Op::multi_set};
  for (int i = 0; i < 10'000; ++i) {
    many.keys.push_back("/" + std::to_string(i));
    many.values.push_back(std::to_string(i));
  }
  client.send(many);
  client.send({.op = Op::multi_get, .keys = many.keys});
  std::vector<std::string> values;
  for (int i = 0; i < 10'000; ++i) values.push_back(client.receive_text());
  CHECK(values == many.values);
}

TEST_CASE("connection: a thousand requests in one go are answered in order", "[store]") {
  StoreThread store;
  auto client = StoreClient::greeted(store.port());
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += encode({.op = Op::add, .keys = {"/n"}, .number = 1});
  client.send(bytes);
  bool in_order = true;
  for (int i = 1; i <= 1000; ++i) in_order = in_order && client.receive_number() == i;
  CHECK(in_order);
}

TEST_CASE("connection: pauses a client that does not read its replies", "[store]") {
  StoreThread store;
  auto lazy = StoreClient::greeted(store.port());
  const std::string value(4U << 20U, 'v');
  lazy.set("/big", value);
  REQUIRE(lazy.alive());
  constexpr int kReads = 20;  // 80 MiB: more than any socket buffer
  std::string bytes;
  for (int i = 0; i < kReads; ++i) bytes += encode({.op = Op::get, .keys = {"/big"}});
  lazy.send(bytes + encode({.op = Op::set, .keys = {"/read_all"}, .values = {"1"}}));
  auto other = StoreClient::greeted(store.port());
  CHECK(other.get("/big").size() == value.size());
  CHECK(other.get("/read_all").empty());
  bool all_whole = true;
  for (int i = 0; i < kReads; ++i) all_whole = all_whole && lazy.receive_text() == value;
  CHECK(all_whole);
  CHECK(lazy.get("/read_all") == "1");
}

TEST_CASE("connection: replies are sent after the client's EOF", "[store]") {
  StoreThread store;
  auto client = StoreClient::greeted(store.port());
  const std::string value(30U << 20U, 'v');
  client.set("/big", value);
  client.send({.op = Op::get, .keys = {"/big"}});
  client.end_requests();
  CHECK(client.receive_text() == value);
  CHECK(client.closed_by_server());
}

TEST_CASE("connection: the last requests of a client that disconnects are carried out", "[store]") {
  StoreThread store;
  auto lazy = StoreClient::greeted(store.port());
  lazy.set("/big", std::string(4U << 20U, 'v'));
  std::string bytes;
  for (int i = 0; i < 20; ++i) bytes += encode({.op = Op::get, .keys = {"/big"}});
  auto watching = StoreClient::greeted(store.port());
  watching.send({.op = Op::wait, .keys = {"/last"}});
  REQUIRE(watching.alive());
  lazy.send(bytes + encode({.op = Op::set, .keys = {"/last"}, .values = {"1"}}));
  lazy.leave();
  CHECK(watching.receive(1) == std::string(1, '\0'));
}

TEST_CASE("connection: replies that need too much memory end it", "[store]") {
  StoreThread store({.max_unsent_bytes = 100'000});
  auto greedy = StoreClient::greeted(store.port());
  greedy.set("/small", std::string(200, 'v'));
  acc::launcher::Request many = {.op = Op::multi_get};
  many.keys.assign(1000, "/small");
  greedy.send(many);
  CHECK(greedy.closed_by_server());
  auto good = StoreClient::greeted(store.port());
  CHECK(good.get("/small").size() == 200);
}

TEST_CASE("connection: a long value that is read a thousand times is not copied", "[store]") {
  StoreThread store({.max_unsent_bytes = 200'000});
  auto client = StoreClient::greeted(store.port());
  const std::string value(100'000, 'v');
  client.set("/long", value);
  acc::launcher::Request many = {.op = Op::multi_get};
  many.keys.assign(1000, "/long");
  client.send(many);
  bool all_whole = true;
  for (int i = 0; i < 1000; ++i) all_whole = all_whole && client.receive_text() == value;
  CHECK(all_whole);
}

}  // namespace connection_test
