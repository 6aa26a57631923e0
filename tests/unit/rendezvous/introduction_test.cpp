// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/introduction.hpp"

#include <functional>

#include "acc/rendezvous/node_listener.hpp"
#include "support/catch.hpp"
#include "support/drive.hpp"

namespace introduction_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

const JobSecret kSecret("0123456789abcdef", "");
const JobSecret kOther("fedcba9876543210", "");

// A node that listens, and one that connects to it; each knows a secret or none.
struct Meeting {
  Meeting(const JobSecret& listener_nonce, const JobSecret& dialer_nonce, const std::string& run_id = "job7")
      : listener(loop, {"127.0.0.1"}, "job7", listener_nonce, 10s,
                 [this](std::shared_ptr<Member> member) { members.push_back(std::move(member)); }) {
    asio::ip::tcp::socket socket(loop);
    socket.connect({asio::ip::address_v4::loopback(), listener.port()});
    connection = std::make_shared<NodeConnection>(std::move(socket), 10s);
    connection->set_handlers([](const NodeMessage&) {}, [this](const ConnectionLoss&) { lost = true; });
    connection->start();
    introduce(
        connection, dialer_nonce, {.run_id = run_id, .node = {.host = "node1"}},
        [this](bool is_proven) {
          proven = is_proven;
          connection->set_handlers([this](NodeMessage message) { received.push_back(std::move(message)); },
                                   [this](const ConnectionLoss&) { lost = true; });
        },
        [this](const ConnectionLoss&) { lost = true; });
  }
  void until(const std::function<bool()>& reached) { test::drive(loop, reached); }

  asio::io_context loop;
  std::vector<std::shared_ptr<Member>> members = {};
  NodeListener listener;
  std::shared_ptr<NodeConnection> connection = {};
  std::vector<NodeMessage> received = {};
  std::optional<bool> proven = {};
  bool lost = false;
};

}  // namespace

TEST_CASE("introduction: without a secret a node sends its Hello at once", "[rendezvous]") {
  Meeting meeting({}, {});
  meeting.until([&] { return !meeting.members.empty(); });
  CHECK(meeting.members[0]->hello.node.host == "node1");
  CHECK_FALSE(meeting.members[0]->is_proven);
  CHECK(meeting.proven == true);
}

TEST_CASE("introduction: nodes with the same secret prove it to each other", "[rendezvous]") {
  Meeting meeting(kSecret, kSecret);
  meeting.until([&] { return !meeting.members.empty(); });
  CHECK(meeting.members[0]->is_proven);
  CHECK(meeting.proven == true);
}

TEST_CASE("introduction: a node with another secret, or the only one with a secret, sends no Hello",
          "[rendezvous]") {
  const bool has_secret = GENERATE(true, false);
  Meeting meeting(has_secret ? kOther : JobSecret(), kSecret);
  meeting.until([&] { return meeting.proven.has_value(); });
  CHECK(meeting.proven == false);
  CHECK(meeting.members.empty());
}

TEST_CASE("introduction: a node without the secret is refused with the reason", "[rendezvous]") {
  Meeting meeting(kSecret, {});
  meeting.until([&] { return meeting.lost; });
  REQUIRE(meeting.received.size() == 1);
  CHECK(std::get<RoundEnds>(meeting.received[0])
            .verdict.text.starts_with("the nodes of this job share a secret"));
  CHECK(meeting.members.empty());
}

namespace {

// Sends arbitrary messages.
struct Stranger {
  explicit Stranger(Meeting& meeting) {
    asio::ip::tcp::socket socket(meeting.loop);
    socket.connect({asio::ip::address_v4::loopback(), meeting.listener.port()});
    connection = std::make_shared<NodeConnection>(std::move(socket), 10s);
    connection->set_handlers([this](NodeMessage message) { received.push_back(std::move(message)); },
                             [this](const ConnectionLoss&) { lost = true; });
    connection->start();
  }
  std::shared_ptr<NodeConnection> connection;
  std::vector<NodeMessage> received = {};
  bool lost = false;
};

}  // namespace

TEST_CASE("introduction: the proof of one node is not valid for another", "[rendezvous]") {
  Meeting meeting(kSecret, kSecret);
  meeting.until([&] { return !meeting.members.empty(); });
  const Hello overheard = meeting.members[0]->hello;
  REQUIRE_FALSE(overheard.proof.empty());
  Stranger stranger(meeting);
  SECTION("said again") {
    stranger.connection->send(overheard);
  }
  SECTION("said again after a challenge") {
    stranger.connection->send(Challenge{"d"});
    meeting.until([&] { return !stranger.received.empty(); });
    stranger.connection->send(overheard);
  }
  SECTION("the listener's own proof, given back") {
    stranger.connection->send(Challenge{"d"});
    meeting.until([&] { return !stranger.received.empty(); });
    Hello hello = overheard;
    hello.proof = std::get<Proof>(stranger.received[0]).proof;
    stranger.connection->send(hello);
  }
  SECTION("a second challenge") {
    stranger.connection->send(Challenge{"d"});
    stranger.connection->send(Challenge{"d"});
  }
  meeting.until([&] { return stranger.lost; });
  CHECK(meeting.members.size() == 1);
}

}  // namespace introduction_test
