// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/node_connection.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "acc/base/machine.hpp"
#include "support/catch.hpp"
#include "support/drive.hpp"

namespace node_connection_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

struct Side {
  std::shared_ptr<NodeConnection> connection;
  std::vector<NodeMessage> messages = {};
  std::vector<ConnectionLoss> losses = {};

  void start(tcp::socket socket, std::chrono::milliseconds timeout, SilenceReports reports = {}) {
    connection = std::make_shared<NodeConnection>(std::move(socket), timeout, reports);
    connection->set_handlers([this](NodeMessage message) { messages.push_back(std::move(message)); },
                             [this](const ConnectionLoss& loss) { losses.push_back(loss); });
    connection->start();
  }
};

// Two connected sockets, one of them or both under a NodeConnection.
struct Pair {
  asio::io_context loop;
  tcp::acceptor acceptor{loop, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  tcp::socket near{loop};
  tcp::socket far{loop};

  Pair() {
    near.connect(acceptor.local_endpoint());
    acceptor.accept(far);
  }

  template <typename Condition>
  bool run_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!condition() && loop.run_one_until(deadline) > 0) {
    }
    return condition();
  }
};

// What the far side reads until `connection` closes, though it sends meanwhile. The connection ends with it.
std::string last_message(Pair& pair, std::shared_ptr<NodeConnection> connection) {
  pair.loop.poll();
  asio::write(pair.far, asio::buffer(encode(Heartbeat{})));
  pair.loop.poll();
  std::string text;
  boost::system::error_code error;
  asio::read(pair.far, asio::dynamic_buffer(text), error);
  CHECK(error == asio::error::eof);
  pair.far.close();
  const std::weak_ptr<NodeConnection> closing = std::exchange(connection, nullptr);
  CHECK(pair.run_until([&] { return closing.expired(); }));
  return text;
}

}  // namespace

TEST_CASE("node_connection: messages arrive in order", "[rendezvous]") {
  Pair pair;
  Side near, far;
  near.start(std::move(pair.near), 10s);
  far.start(std::move(pair.far), 10s);
  for (int round = 0; round < 1000; ++round) near.connection->send(WorkersDone{round});
  far.connection->send(Waiting{std::string(100'000, 'x')});
  REQUIRE(pair.run_until([&] { return far.messages.size() == 1000 && near.messages.size() == 1; }));
  for (int round = 0; round < 1000; ++round)
    CHECK(far.messages[static_cast<std::size_t>(round)] == NodeMessage(WorkersDone{round}));
}

TEST_CASE("node_connection: who looks at many ranks over a slow network is not lost for it", "[rendezvous]") {
  Pair pair;
  Side near;
  near.start(std::move(pair.near), 10s);
  const RankReport report = {.ranks = std::string(300'000, 'x')};
  for (int number = 0; number < 100; ++number) near.connection->send(report);
  CHECK(near.losses.empty());
  // What the job needs still arrives.
  near.connection->send(WorkersDone{7});
  Side far;
  far.start(std::move(pair.far), 10s);
  far.connection->trust();
  REQUIRE(pair.run_until(
      [&] { return !far.messages.empty() && far.messages.back() == NodeMessage(WorkersDone{7}); }));
  CHECK(far.messages.size() > 5);
  CHECK(far.messages.size() < 20);
}

TEST_CASE("node_connection: messages before a close arrive, and then the end", "[rendezvous]") {
  Pair pair;
  Side near, far;
  near.start(std::move(pair.near), 10s);
  far.start(std::move(pair.far), 10s);
  near.connection->send(Leave{"done"});
  near.connection->close();
  REQUIRE(pair.run_until([&] { return !far.losses.empty(); }));
  CHECK(far.messages.size() == 1);
  CHECK(far.losses[0].peer_has_ended);
  CHECK(near.losses.empty());  // close() reports no loss
}

TEST_CASE("node_connection: heartbeats keep a connection that sends nothing else", "[rendezvous]") {
  Pair pair;
  Side near, far;
  near.start(std::move(pair.near), 200ms);
  far.start(std::move(pair.far), 200ms);
  pair.loop.run_for(1s);
  CHECK(near.losses.empty());
  CHECK(far.losses.empty());
  CHECK(near.messages.empty());
}

TEST_CASE("node_connection: silence ends it, but is not the end of the other process", "[rendezvous]") {
  Pair pair;
  Side near;
  near.start(std::move(pair.near), 100ms);
  REQUIRE(pair.run_until([&] { return !near.losses.empty(); }));
  CHECK_FALSE(near.losses[0].peer_has_ended);
  CHECK(near.losses[0].reason == "silent for 0.1 s");
  CHECK_FALSE(near.connection->is_open());
}

TEST_CASE(
    "node_connection: silence is reported again and again before it ends the connection, and so is its end",
    "[rendezvous]") {
  Pair pair;
  Side near;
  std::vector<Silence> sent_to;
  constexpr auto kFirst = 200ms;
  near.start(std::move(pair.near), 60s, {.first = kFirst, .interval = 50ms});
  near.connection->on_silence([&](const Silence& silence) { sent_to.push_back(silence); });
  REQUIRE(pair.run_until([&] { return sent_to.size() == 3; }));
  CHECK(near.losses.empty());
  for (const Silence& silence : sent_to) {
    CHECK_FALSE(silence.is_over);
    CHECK(silence.duration >= kFirst);
    CHECK(silence.timeout == 60s);
  }
  asio::write(pair.far, asio::buffer(encode(WorkersDone{7})));
  REQUIRE(pair.run_until([&] { return !near.messages.empty(); }));
  CHECK(sent_to.back().is_over);
  CHECK(near.losses.empty());
}

TEST_CASE("node_connection: the other side is not silent while this process stands still", "[rendezvous]") {
  Pair pair;
  Side near;
  near.start(std::move(pair.near), 400ms);
  test::stand_still(pair.loop, 500ms);
  pair.loop.poll();
  CHECK(near.losses.empty());
  REQUIRE(pair.run_until([&] { return !near.losses.empty(); }));
}

TEST_CASE("node_connection: reports the first bytes", "[rendezvous]") {
  Pair pair;
  Side near;
  int received = 0;
  near.start(std::move(pair.near), 60s);
  near.connection->on_next_bytes([&] { ++received; });
  CHECK(received == 0);
  for (int round = 1; round <= 2; ++round) {
    asio::write(pair.far, asio::buffer(encode(WorkersDone{round})));
    REQUIRE(pair.run_until([&] { return near.messages.size() == static_cast<std::size_t>(round); }));
  }
  CHECK(received == 1);
}

TEST_CASE("node_connection: the timeout can be changed during silence", "[rendezvous]") {
  Pair pair;
  Side near;
  near.start(std::move(pair.near), 600s, {.first = 20ms, .interval = 600s});
  near.connection->on_silence([&](const Silence&) { near.connection->set_timeout(100ms); });
  REQUIRE(pair.run_until([&] { return !near.losses.empty(); }));
  CHECK_FALSE(near.losses[0].peer_has_ended);
  CHECK(near.losses[0].reason == "silent for 0.1 s");
}

TEST_CASE("node_connection: who gives up a silent side says so, whatever comes from there meanwhile",
          "[rendezvous]") {
  Pair pair;
  auto near = std::make_shared<NodeConnection>(std::move(pair.near), 100ms);
  bool has_given_up = false;
  near->set_handlers([](const NodeMessage&) {},
                     [&](const ConnectionLoss&) {
                       near->send(Leave{.reason = "you were silent"});
                       has_given_up = true;
                     });
  near->start();
  REQUIRE(pair.run_until([&] { return has_given_up; }));
  CHECK_THAT(last_message(pair, std::move(near)), Catch::Contains("you were silent"));
}

TEST_CASE("node_connection: a silent side that never closes keeps the connection for one more timeout",
          "[rendezvous]") {
  Pair pair;
  auto near = std::make_shared<NodeConnection>(std::move(pair.near), 100ms);
  near->set_handlers([](const NodeMessage&) {}, [](const ConnectionLoss&) {});
  near->start();
  const std::weak_ptr<NodeConnection> closing = std::exchange(near, nullptr);
  CHECK(pair.run_until([&] { return closing.expired(); }));
  CHECK(pair.far.is_open());
}

TEST_CASE("node_connection: a side that is dismissed hears why, whatever it sends meanwhile",
          "[rendezvous]") {
  Pair pair;
  auto near = std::make_shared<NodeConnection>(std::move(pair.near), 10s);
  near->start();
  asio::write(pair.far, asio::buffer(encode(Join{})));
  near->dismiss(Moved{"10.0.0.2", 20001});
  CHECK_FALSE(near->is_open());
  CHECK_THAT(last_message(pair, std::move(near)), Catch::Contains("10.0.0.2"));
}

TEST_CASE("node_connection: a side that is dismissed for what it said is read until it ends",
          "[rendezvous]") {
  Pair pair;
  auto near = std::make_shared<NodeConnection>(std::move(pair.near), 60s);  // longer than run_until() waits
  near->set_handlers([&](const NodeMessage&) { near->dismiss(Full{}); }, [](const ConnectionLoss&) {});
  near->start();
  asio::write(pair.far, asio::buffer(encode(Join{})));
  REQUIRE(pair.run_until([&] { return !near->is_open(); }));
  near->set_handlers({}, {});
  pair.far.close();
  const std::weak_ptr<NodeConnection> closing = std::exchange(near, nullptr);
  CHECK(pair.run_until([&] { return closing.expired(); }));
}

TEST_CASE("node_connection: a side that is dismissed and goes on talking is heard for one timeout",
          "[rendezvous]") {
  Pair pair;
  auto near = std::make_shared<NodeConnection>(std::move(pair.near), 100ms);
  near->start();
  asio::steady_timer timer(pair.loop);
  const std::function<void()> talk = [&] {
    boost::system::error_code ignored;
    asio::write(pair.far, asio::buffer(encode(Heartbeat{})), ignored);
    timer.expires_after(20ms);
    timer.async_wait([&](const auto& error) {
      if (!error) talk();
    });
  };
  talk();
  near->dismiss(Full{});
  const std::weak_ptr<NodeConnection> closing = std::exchange(near, nullptr);
  CHECK(pair.run_until([&] { return closing.expired(); }));
}

TEST_CASE("node_connection: an invalid message ends the connection", "[rendezvous]") {
  Pair pair;
  Side near;
  near.start(std::move(pair.near), 10s);
  asio::write(pair.far, asio::buffer(std::string("GET / HTTP/1.1\r\n\r\n")));
  REQUIRE(pair.run_until([&] { return !near.losses.empty(); }));
  CHECK(near.messages.empty());
}

TEST_CASE("node_connection: an endless line ends the connection", "[rendezvous]") {
  Pair pair;
  Side near;
  near.start(std::move(pair.near), 60s);
  std::string text(5U << 20U, 'x');
  asio::async_write(pair.far, asio::buffer(text), [](const auto&, std::size_t) {});
  REQUIRE(pair.run_until([&] { return !near.losses.empty(); }));
  CHECK(near.losses[0].reason == "a message of more than 4096 KiB");
}

TEST_CASE("node_connection: who sends too long a message is told so, though it goes on sending",
          "[rendezvous]") {
  Pair pair;
  Side far;
  far.start(std::move(pair.far), 60s);
  const auto near = std::make_shared<NodeConnection>(std::move(pair.near), 60s);
  std::vector<ConnectionLoss> losses;
  near->set_handlers([](const NodeMessage&) {}, [&](const ConnectionLoss& loss) { losses.push_back(loss); });
  near->start_as_stranger();
  far.connection->send(Hello{.run_id = std::string(3U << 20U, 'x')});
  REQUIRE(pair.run_until([&] { return !far.losses.empty(); }));
  REQUIRE(far.messages.size() == 1);
  CHECK(std::get<RoundEnds>(far.messages[0]).verdict.text ==
        host_name() + " refuses a message of this node: it has more than 64 KiB");
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].reason == "a message of more than 64 KiB");
}

TEST_CASE("node_connection: the silence report says who, for how long, and what follows", "[rendezvous]") {
  CHECK(silence_text("node b", {.duration = 3700ms, .timeout = 15s}) ==
        "node b has been silent for 3 s; it counts as lost after 15 s");
  CHECK(silence_text("node b", {.duration = 4s, .is_over = true}) == "node b answers again, after 4 s");
}

}  // namespace node_connection_test
