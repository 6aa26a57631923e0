// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/exchange.hpp"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <list>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "acc/preflight/peer_probe.hpp"
#include "acc/store/client.hpp"
#include "acc/store/server.hpp"
#include "support/catch.hpp"
#include "support/observations.hpp"
#include "support/store_client.hpp"

namespace exchange_test {

using namespace acc;
using namespace acc::test;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using nlohmann::json;

namespace {

/// A store on an event loop of this process.
class StoreOfJob {
 public:
  StoreOfJob() : thread_([this] { loop_.run(); }) {}
  ~StoreOfJob() {
    loop_.stop();
    thread_.join();
  }
  std::uint16_t port() const { return server_.port(); }

 private:
  asio::io_context loop_{1};
  StoreServer server_{loop_, {}};
  std::thread thread_;
};

/// The checks of one node, on a thread of its own.
class Node {
 public:
  Node(std::uint16_t port, NodeHealth health, int num_nodes, ExchangeLimits limits = {})
      : job_{.round = {.machine_rank = health.rank, .num_machines = num_nodes}},
        health_(std::move(health)),
        thread_([this, port, limits] { run(port, limits); }) {}

  const NodeCheckResult& result() {
    if (thread_.joinable()) thread_.join();
    REQUIRE(result_);
    return *result_;
  }
  std::int64_t keys_left() {
    result();
    return keys_left_;
  }
  ~Node() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run(std::uint16_t port, ExchangeLimits limits) {
    asio::io_context loop(1);
    launcher::StoreClient store(loop);
    const auto done = [&, port](const std::exception_ptr&, NodeCheckResult answer) {
      result_ = std::move(answer);
      // Answered when all requests before it were carried out.
      store.check({}, [&, port](StoreOutcome, bool) {
        test::StoreClient other = test::StoreClient::greeted(port);
        other.send({.op = Op::get_num_keys});
        keys_left_ = other.receive_number();
        loop.stop();
      });
    };
    store.connect(
        {"127.0.0.1", port}, RunningClock::now() + 30s, [](const std::string&) {},
        [&](std::optional<Error> error) {
          if (!error)
            asio::co_spawn(
                loop, check_together(loop, store, job_, health_, limits, std::chrono::steady_clock::now()),
                done);
        });
    loop.run();
  }

  NodeCheckJob job_;
  NodeHealth health_;
  std::optional<NodeCheckResult> result_ = {};
  std::int64_t keys_left_ = -1;
  std::thread thread_;
};

NodeHealth node_here(int rank) {
  NodeHealth node = healthy_node(rank);
  node.address = "127.0.0.1";
  node.meeting.lookup.addresses = {"127.0.0.1"};
  return node;
}

/// A node played by the test: its probe answers when and as the test says.
class PlayedNode {
 public:
  using Socket = asio::ip::tcp::socket;

  PlayedNode(std::uint16_t store, int rank) : store_(acc::test::StoreClient::greeted(store)), rank_(rank) {
    NodeHealth health = node_here(rank);
    health.port = acceptor_.local_endpoint().port();
    publish("health", std::string(kTokenSize, 't') + encode(health));
  }

  void publish(const std::string& what, const std::string& value) {
    store_.set("/acc/preflight/0/" + what + "/" + std::to_string(rank_), value);
  }
  PeerAddress address() const {
    return {rank_, "127.0.0.1", acceptor_.local_endpoint().port(), std::string(kTokenSize, 't')};
  }
  /// What rank 0 publishes.
  std::string told(const std::string& what) {
    store_.send({.op = Op::wait, .keys = {"/acc/preflight/0/" + what}});
    store_.receive(1);
    return store_.get("/acc/preflight/0/" + what);
  }
  /// The next connection of a peer that asks for this.
  Socket accept(const std::string& request) {
    Socket socket = acceptor_.accept();
    std::string received(kTokenSize + request.size(), '\0');
    asio::read(socket, asio::buffer(received));
    CHECK(received == std::string(kTokenSize, 't') + request);
    return socket;
  }
  /// Takes a little of what the peer sends in the turn.
  void receive_from(const PeerAddress& peer, const std::string& turn) {
    Socket socket(loop_);
    socket.connect({asio::ip::make_address(peer.address), peer.port});
    asio::write(socket, asio::buffer(peer.token + "d" + turn));
    char byte = 0;
    asio::read(socket, asio::buffer(&byte, 1));
  }

 private:
  acc::test::StoreClient store_;
  int rank_;
  asio::io_context loop_{1};
  asio::ip::tcp::acceptor acceptor_{loop_, {asio::ip::make_address("127.0.0.1"), 0}};
};

/// Node 1, which cannot be reached, and publishes that it has measured nothing in these parts.
acc::test::StoreClient unreachable_node(std::uint16_t store, const std::vector<std::string>& parts) {
  NodeHealth health = node_here(1);
  health.address = "127.0.0.300";
  auto node = acc::test::StoreClient::greeted(store);
  node.set("/acc/preflight/0/health/1", std::string(kTokenSize, 't') + encode(health));
  for (const std::string& part : parts) node.set("/acc/preflight/0/" + part + "/1", "[]");
  return node;
}

void send_until_closed(asio::ip::tcp::socket& socket) {
  const std::string bytes(std::size_t{1} << 20U, ' ');
  boost::system::error_code error;
  while (!error) asio::write(socket, asio::buffer(bytes), error);
}

json row(const json& list, const char* name, int from, int to) {
  for (const json& one : list.at(name))
    if (one.at("from") == from && one.at("to") == to) return one;
  return nullptr;
}

}  // namespace

TEST_CASE("exchange: three nodes meet, measure each pair in both directions and agree", "[preflight]") {
  const StoreOfJob store;
  std::list<Node> nodes;
  for (const int rank : {2, 0, 1}) nodes.emplace_back(store.port(), node_here(rank), 3);
  const auto& first = std::next(nodes.begin())->result();
  CHECK(first.passed);
  const json report = json::parse(first.json);
  CHECK(report["nodes"].size() == 3);
  for (const auto& [from, to] : {std::pair(0, 1), {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}}) {
    INFO(from << " to " << to);
    CHECK(row(report, "connections", from, to)["error"] == "");
    CHECK(std::abs(row(report, "connections", from, to)["clock_offset_seconds"].get<double>()) < 1);
    // Far below what loopback does, far above a transfer that waited for another.
    CHECK(row(report, "transfers", from, to)["bytes_per_second"].get<double>() > 1e6);
  }
  CHECK(std::next(nodes.begin())->keys_left() <= 1);  // the handshake of torch's clients leaves one
  CHECK(nodes.front().result().passed);
}

TEST_CASE("exchange: a finding reaches every node, and its node by name", "[preflight]") {
  const StoreOfJob store;
  std::list<Node> nodes;
  for (const int rank : {0, 1, 2}) {
    NodeHealth health = node_here(rank);
    if (rank == 1) health.gpus.pop_back();
    nodes.emplace_back(store.port(), health, 3);
  }
  for (Node& node : nodes) {
    CHECK_FALSE(node.result().passed);
    CHECK(node.result().summary ==
          "the preflight failed: node1: has 1 GPU, others have 2; the table is on node 0");
  }
  CHECK(nodes.front().result().text.find("error: node1: has 1 GPU") != std::string::npos);
}

TEST_CASE("exchange: a warning is told on rank 0 and to its node", "[preflight]") {
  const StoreOfJob store;
  std::list<Node> nodes;
  for (const int rank : {0, 1, 2}) {
    NodeHealth health = node_here(rank);
    if (rank == 1) health.driver = "535.1";
    nodes.emplace_back(store.port(), health, 3);
  }
  Node& first = nodes.front();
  Node& second = *std::next(nodes.begin());
  CHECK(first.result().passed);
  CHECK_FALSE(first.result().clean);
  CHECK(second.result().passed);
  CHECK(second.result().text.find("warning: node1: has the driver 535.1, others 550.54") !=
        std::string::npos);
  CHECK(nodes.back().result().text.find("driver") == std::string::npos);
}

TEST_CASE("exchange: a node that does not come is named, and the others go on", "[preflight]") {
  const StoreOfJob store;
  // The others would wait for an hour if they waited for what it measures. Rank 0 waits for it only when the
  // other one is there, however late that is.
  Node last(store.port(), node_here(2), 3, {.self = 1h, .measuring = 1h});
  auto observer = acc::test::StoreClient::greeted(store.port());
  observer.send({.op = Op::wait, .keys = {"/acc/preflight/0/health/2"}});
  observer.receive(1);
  Node first(store.port(), node_here(0), 3, {.self = 100ms, .step = 200ms, .measuring = 1h});
  CHECK(first.result().summary ==
        "the preflight failed: node 1: took no part in the preflight; the table is on node 0");
  CHECK(json::parse(first.result().json)["connections"].size() == 2);
  CHECK_FALSE(last.result().passed);
}

TEST_CASE("exchange: a node of another version of acc is named, and the others go on", "[preflight]") {
  const StoreOfJob store;
  auto other = acc::test::StoreClient::greeted(store.port());
  other.set("/acc/preflight/0/health/1",
            GENERATE(as<std::string>(), "", "{}", "a token of thirty-two characters{\"rank\":1}",
                     std::string(32, '\xff') + encode(node_here(1))));
  Node first(store.port(), node_here(0), 2, {.step = 100ms, .measuring = 1h});
  CHECK(first.result().summary ==
        "the preflight failed: node 1: took no part in the preflight; the table is on node 0");
}

TEST_CASE("exchange: a node that does not report what it measured is named", "[preflight]") {
  const StoreOfJob store;
  const auto silent = unreachable_node(store.port(), {"connections"});
  Node first(store.port(), node_here(0), 2, {.step = 500ms, .measuring = 500ms});
  CHECK_FALSE(first.result().passed);
  CHECK(first.result().text.find("error: node1: did not report what it measured") != std::string::npos);
}

TEST_CASE("exchange: rank 0 waits no more for the nodes that it names", "[preflight]") {
  const StoreOfJob store;
  const auto silent = unreachable_node(store.port(), {"connections"});
  // Node 2 takes no part.
  Node first(store.port(), node_here(0), 3,
             {.self = 100ms, .step = 200ms, .measuring = 200ms, .refusal = 1h});
  CHECK(first.result().text.find("error: node1: did not report what it measured") != std::string::npos);
  CHECK(first.result().text.find("error: node 2: took no part in the preflight") != std::string::npos);
}

TEST_CASE("exchange: with an error rank 0 does not wait for a node that may never read it", "[preflight]") {
  const StoreOfJob store;
  const auto late = unreachable_node(store.port(), {"connections", "transfers"});
  Node first(store.port(), node_here(0), 2, {.step = 1h, .refusal = 100ms});
  CHECK_FALSE(first.result().passed);
  CHECK(first.keys_left() <= 1);
}

TEST_CASE("exchange: without rank 0 a node says what it waited for", "[preflight]") {
  const StoreOfJob store;
  Node node(store.port(), node_here(1), 2, {.self = 50ms, .step = 50ms});
  CHECK(node.result().summary == "the preflight failed: node1 was not told who takes part by rank 0 in time");
}

TEST_CASE("exchange: a pair that cannot connect is named and not measured", "[preflight]") {
  const StoreOfJob store;
  std::list<Node> nodes;
  for (const int rank : {0, 1, 2}) {
    NodeHealth health = node_here(rank);
    // Where nothing listens for node 1's token: its probes are answered by nobody.
    if (rank == 1) health.address = "127.0.0.300";
    nodes.emplace_back(store.port(), health, 3);
  }
  const json report = json::parse(nodes.front().result().json);
  CHECK(nodes.front().result().summary ==
        "the preflight failed: node1: no other node can connect to it; the table is on node 0");
  CHECK(row(report, "transfers", 0, 1) == nullptr);
  CHECK(row(report, "transfers", 0, 2)["bytes_per_second"].get<double>() > 0);
}

TEST_CASE("exchange: a transfer that was slow is measured again, and the better speed counts",
          "[preflight]") {
  const StoreOfJob store;
  Node first(store.port(), node_here(0), 2);
  PlayedNode second(store.port(), 1);
  const PeerAddress peer = decode_peers(second.told("peers"), 2).front();
  PlayedNode::Socket clock = second.accept("t00000000");
  asio::write(clock, asio::buffer(std::array<double, 1>()));
  second.publish("connections", encode(std::vector<ConnectionCheck>()));
  {
    // Nothing comes after the first byte.
    PlayedNode::Socket slow = second.accept("d00000000");
    asio::write(slow, asio::buffer("b", 1));
    char byte = 0;
    boost::system::error_code error;
    asio::read(slow, asio::buffer(&byte, 1), error);
  }
  second.receive_from(peer, "00000000");
  const std::vector<Transfer> transfers = {{.from = 0, .to = 1, .bytes_per_second = 1e6}};
  second.publish("transfers", encode(transfers));
  CHECK(second.told("slow") == "[[0,1]]");
  PlayedNode::Socket fast = second.accept("d00000001");
  send_until_closed(fast);
  second.receive_from(peer, "00000001");
  second.publish("repeats", encode(transfers));
  second.publish("read", "");
  const json report = json::parse(first.result().json);
  CHECK(row(report, "transfers", 1, 0)["bytes_per_second"].get<double>() > 1e6);
  CHECK(row(report, "transfers", 0, 1)["bytes_per_second"] == 1e6);
}

TEST_CASE("peer_probe: a node that answers late can be reached", "[preflight]") {
  const StoreOfJob store;
  PlayedNode late(store.port(), 1);
  asio::io_context loop(1);
  PeerProbe probe(loop, 0, {.connect = 50ms, .answer = 1h});
  std::optional<ConnectionCheck> check;
  asio::co_spawn(loop, probe.connect(late.address()),
                 [&](const std::exception_ptr&, ConnectionCheck result) { check = std::move(result); });
  // Its kernel makes the connection, and it does not run before the time for that is over.
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < begin + 100ms) loop.run_one_for(10ms);
  PlayedNode::Socket socket = late.accept("t00000000");
  asio::write(socket, asio::buffer(std::array<double, 1>()));
  while (!check) loop.run_one();
  CHECK(check->error.empty());
}

TEST_CASE("peer_probe: a node that is connected and does not answer is told from one that is not",
          "[preflight]") {
  const StoreOfJob store;
  const PlayedNode silent(store.port(), 1);
  asio::io_context loop(1);
  PeerProbe probe(loop, 0, {.connect = 1h, .answer = 50ms});
  std::optional<ConnectionCheck> check;
  asio::co_spawn(loop, probe.connect(silent.address()),
                 [&](const std::exception_ptr&, ConnectionCheck result) { check = std::move(result); });
  while (!check) loop.run_one();
  CHECK(check->error == "connected, but no answer within 0.05 s");
}

TEST_CASE("peer_probe: the speed of a transfer does not depend on when its receiver may run", "[preflight]") {
  const auto begin = std::chrono::steady_clock::time_point();
  const auto speed_of = [&](const std::vector<std::pair<std::chrono::milliseconds, std::uint64_t>>& reads) {
    TransferSpeed speed(begin, 400ms);
    for (const auto& [time, bytes] : reads) speed.add(bytes, begin + time);
    return speed.bytes_per_second(begin + 400ms);
  };
  // The slow start does not count.
  CHECK(speed_of({{50ms, 10}, {100ms, 10}, {200ms, 1000}, {300ms, 1000}, {400ms, 1000}}) == Approx(10'000));
  // It did not run before the transfer was nearly over, and not after.
  CHECK(speed_of({{10ms, 100}, {390ms, 3900}}) == Approx(10'000));
  CHECK(speed_of({{10ms, 4000}}) == Approx(10'000));
  CHECK(speed_of({}) == 0);
}

TEST_CASE("peer_probe: a stranger without the token gets no answer", "[preflight]") {
  asio::io_context loop(1);
  PeerProbe probe(loop, 0);
  std::thread thread([&] { loop.run(); });
  asio::io_context client_loop;
  asio::ip::tcp::socket socket(client_loop);
  socket.connect({asio::ip::make_address("127.0.0.1"), probe.port()});
  asio::write(socket, asio::buffer(std::string(probe.token().size(), 'x') + "t00000000"));
  char byte = 0;
  boost::system::error_code error;
  CHECK(asio::read(socket, asio::buffer(&byte, 1), error) == 0);
  CHECK(error == asio::error::eof);
  loop.stop();
  thread.join();
}

}  // namespace exchange_test
