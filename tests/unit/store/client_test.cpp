// SPDX-License-Identifier: Apache-2.0
#include "acc/store/client.hpp"

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/store/server.hpp"
#include "support/catch.hpp"
#include "support/drive.hpp"

namespace client_test {

namespace {

namespace asio = boost::asio;
using acc::RunningClock;
using acc::launcher::StoreClient;
using acc::launcher::StoreOutcome;
using acc::launcher::StoreServer;
using asio::ip::tcp;
using std::chrono::milliseconds;

constexpr milliseconds kLong = std::chrono::seconds(30);

struct Fixture {
  asio::io_context loop = {};
  StoreServer server{loop, {}};
  StoreClient client{loop};

  Fixture() { connect(client); }
  void connect(StoreClient& a_client) {
    a_client.connect({"127.0.0.1", server.port()}, RunningClock::now() + kLong, {},
                     [](const auto& error) { CHECK_FALSE(error.has_value()); });
  }

  // Calls `ask(handler)` and returns the reply.
  template <typename Value, typename Ask>
  Value answer(Ask ask) {
    std::optional<Value> value;
    ask([&](StoreOutcome outcome, Value got) {
      CHECK(outcome == StoreOutcome::done);
      value = std::move(got);
    });
    acc::test::drive(loop, [&] { return value.has_value(); });
    return *value;
  }
  template <typename Ask>
  StoreOutcome outcome(Ask ask) {
    std::optional<StoreOutcome> result;
    ask([&](StoreOutcome outcome) { result = outcome; });
    acc::test::drive(loop, [&] { return result.has_value(); });
    return *result;
  }
  StoreClient::Values values(const std::vector<std::string>& keys) {
    return answer<StoreClient::Values>([&](auto handler) { client.multi_get(keys, handler); });
  }
};

// A server that the test controls: it answers only the first requests of a connection.
struct Scripted {
  asio::io_context& loop;
  tcp::acceptor acceptor{loop, {asio::ip::make_address("127.0.0.1"), 0}};
  std::optional<tcp::socket> socket = {};
  std::array<char, 5 + 9> first_request = {};  // validate, check

  explicit Scripted(asio::io_context& the_loop) : loop(the_loop) {}
  void greet() {
    acceptor.async_accept([this](const auto& error, tcp::socket accepted) {
      if (error) return;
      socket.emplace(std::move(accepted));
      asio::async_read(*socket, asio::buffer(first_request),
                       [this](const auto&, std::size_t) { send({"\0", 1}); });
    });
  }
  void read(std::size_t bytes) {
    std::string room(bytes, '\0');
    asio::read(*socket, asio::buffer(room));
  }
  void send(const std::string& bytes) { asio::write(*socket, asio::buffer(bytes)); }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "client: gets what was set, and nothing else", "[store]") {
  client.set("/a", "12");
  client.multi_set({{"/b", "3"}, {"/c", ""}});
  CHECK(values({"/a", "/b", "/c"}) == std::vector<std::string>{"12", "3", ""});
  CHECK_FALSE(values({"/a", "/missing"}).has_value());
  using Value = std::optional<std::string>;
  CHECK(answer<Value>([&](auto handler) { client.get("/c", handler); }) == "");
  CHECK_FALSE(answer<Value>([&](auto handler) { client.get("/missing", handler); }).has_value());
}

TEST_CASE_METHOD(Fixture, "client: adds, compares, checks and deletes", "[store]") {
  CHECK(answer<std::int64_t>([&](auto handler) { client.add("/n", 5, handler); }) == 5);
  CHECK(answer<std::int64_t>([&](auto handler) { client.add("/n", -7, handler); }) == -2);
  CHECK(answer<std::string>([&](auto handler) { client.compare_set("/c", "", "x", handler); }) == "x");
  CHECK(answer<std::string>([&](auto handler) { client.compare_set("/c", "y", "z", handler); }) == "x");
  CHECK(answer<bool>([&](auto handler) { client.check({"/c", "/n"}, handler); }));
  CHECK_FALSE(answer<bool>([&](auto handler) { client.check({"/c", "/d"}, handler); }));
  CHECK(answer<bool>([&](auto handler) { client.delete_key("/c", handler); }));
  CHECK_FALSE(answer<bool>([&](auto handler) { client.delete_key("/c", handler); }));
}

TEST_CASE_METHOD(Fixture, "client: a wait ends when another client sets the key", "[store]") {
  StoreClient other(loop);
  connect(other);
  std::vector<std::string> got;
  client.get_when_present({"/a", "/b"}, kLong, [&](StoreOutcome outcome, auto values) {
    CHECK(outcome == StoreOutcome::done);
    got = std::move(values);
  });
  other.set("/a", "1");
  other.check({"/a"}, [&](StoreOutcome, bool) { other.set("/b", "2"); });
  acc::test::drive(loop, [&] { return !got.empty(); });
  CHECK(got == std::vector<std::string>{"1", "2"});
}

TEST_CASE_METHOD(Fixture, "client: a wait that timed out keeps the connection in sync", "[store]") {
  for (int i = 0; i < 3; ++i) {
    CHECK(outcome([&](auto handler) { client.wait({"/never"}, milliseconds(1), handler); }) ==
          StoreOutcome::timed_out);
  }
  client.set("/a", "1");
  CHECK(values({"/a"}) == std::vector<std::string>{"1"});
}

TEST_CASE_METHOD(Fixture, "client: a wake-up that crosses a timeout keeps the connection in sync",
                 "[store]") {
  StoreClient other(loop);
  connect(other);
  for (int i = 0; i < 100; ++i) {
    const std::string key = "/race/" + std::to_string(i);
    bool over = false;
    client.wait({key}, milliseconds(1), [&](StoreOutcome) { over = true; });
    asio::steady_timer timer(loop, milliseconds(1));
    timer.async_wait([&](const auto&) { other.set(key, "x"); });
    acc::test::drive(loop, [&] { return over; });
    CHECK(outcome([&](auto handler) { client.wait({key}, kLong, handler); }) == StoreOutcome::done);
  }
}

TEST_CASE_METHOD(Fixture, "client: long values work", "[store]") {
  const std::string value(5'000'000, 'x');
  client.set("/long", value);
  CHECK(values({"/long"})->front() == value);
}

TEST_CASE_METHOD(Fixture, "client: a lost connection fails all pending operations, and is reported once",
                 "[store]") {
  CHECK_FALSE(values({"/a"}).has_value());
  std::vector<std::string> calls;
  client.on_closed([&] { calls.emplace_back("closed"); });
  client.wait({"/never"}, kLong, [&](StoreOutcome outcome) {
    if (outcome == StoreOutcome::closed) calls.emplace_back("wait");
  });
  client.add("/n", 1, [&](StoreOutcome outcome, std::int64_t) {
    if (outcome == StoreOutcome::closed) calls.emplace_back("add");
  });
  loop.poll();
  server.reset();
  acc::test::drive(loop, [&] { return calls.size() == 3; });
  CHECK(calls == std::vector<std::string>{"wait", "add", "closed"});
  CHECK_FALSE(client.connected());
  CHECK(outcome([&](auto handler) { client.set("/a", "1", handler); }) == StoreOutcome::closed);
}

TEST_CASE_METHOD(Fixture, "client: may be destroyed in a handler", "[store]") {
  auto mortal = std::make_unique<StoreClient>(loop);
  connect(*mortal);
  bool other = false;
  mortal->check({}, [&](StoreOutcome, bool) { mortal.reset(); });
  mortal->check({}, [&](StoreOutcome, bool) { other = true; });
  acc::test::drive(loop, [&] { return !mortal; });
  loop.poll();
  CHECK_FALSE(other);
}

TEST_CASE("client: operations before the connection fail with it", "[store]") {
  asio::io_context loop;
  tcp::acceptor bound(loop, tcp::v4());
  bound.bind({asio::ip::make_address("127.0.0.1"), 0});
  const std::uint16_t port = bound.local_endpoint().port();
  StoreClient client(loop);
  std::vector<std::string> calls;
  client.connect({"127.0.0.1", port}, RunningClock::now() + milliseconds(40), {},  // one attempt
                 [&](const auto& error) { calls.emplace_back(error->what()); });
  client.add("/n", 1, [&](StoreOutcome outcome, std::int64_t) {
    if (outcome == StoreOutcome::closed) calls.emplace_back("add");
  });
  acc::test::drive(loop, [&] { return calls.size() == 2; });
  CHECK(calls[0] == "add");
  CHECK(calls[1] == "127.0.0.1:" + std::to_string(port) +
                        ": no store answers: Connection refused (check that the node that hosts it runs, and "
                        "that its port can be reached)");
}

TEST_CASE("client: a wake-up for a missing key is checked", "[store]") {
  asio::io_context loop;
  Scripted server(loop);
  server.greet();
  StoreClient client(loop);
  client.connect({"127.0.0.1", server.acceptor.local_endpoint().port()}, RunningClock::now() + kLong, {},
                 [](const auto&) {});
  acc::test::drive(loop, [&] { return client.connected(); });
  std::vector<std::string> got;
  client.get_when_present({"/a"}, kLong, [&](StoreOutcome, auto values) { got = std::move(values); });
  const std::size_t length = 1 + 8 + 8 + 2;  // of a request for the one key
  const auto answer = [&](const std::string& bytes) {
    loop.poll();
    server.read(length);
    server.send(bytes);
    acc::test::drive(loop, [&, asked = server.socket->available()] {
      return !got.empty() || server.socket->available() > asked;
    });
  };
  answer(std::string(1, '\0'));  // torch's bug: the wait is over ...
  answer(std::string(1, '\1'));  // ... and the key is not there
  CHECK(got.empty());
  answer(std::string(1, '\0'));
  answer(std::string(1, '\0'));
  answer(std::string("\5\0\0\0\0\0\0\0value", 13));
  CHECK(got == std::vector<std::string>{"value"});
}

TEST_CASE("client: a store that does not reply is lost", "[store]") {
  asio::io_context loop;
  Scripted server(loop);
  server.greet();
  StoreClient client(loop, milliseconds(20));
  client.connect({"127.0.0.1", server.acceptor.local_endpoint().port()}, RunningClock::now() + kLong, {},
                 [](const auto&) {});
  bool lost = false;
  client.on_closed([&] { lost = true; });
  client.check({}, [](StoreOutcome, bool) {});
  acc::test::drive(loop, [&] { return lost; });
}

TEST_CASE("client: an unrequested byte ends the connection", "[store]") {
  asio::io_context loop;
  Scripted server(loop);
  server.greet();
  StoreClient client(loop);
  client.connect({"127.0.0.1", server.acceptor.local_endpoint().port()}, RunningClock::now() + kLong, {},
                 [](const auto&) {});
  bool lost = false;
  client.on_closed([&] { lost = true; });
  acc::test::drive(loop, [&] { return client.connected(); });
  server.send("x");
  acc::test::drive(loop, [&] { return lost; });
}

}  // namespace client_test
