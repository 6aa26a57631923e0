// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/introduction.hpp"

#include <functional>
#include <optional>

#include "acc/rendezvous/link_listener.hpp"
#include "support/catch.hpp"
#include "support/drive.hpp"

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

const JobSecret kSecret("0123456789abcdef", "");
const JobSecret kOther("fedcba9876543210", "");

// A node that listens, and one that links to it; each knows a secret or none.
struct Meeting {
  Meeting(const JobSecret& of_listener, const JobSecret& of_dialer, const std::string& run_id = "job7")
      : listener(loop, {"127.0.0.1"}, "job7", of_listener, 10s,
                 [this](std::shared_ptr<Follower> follower) { followers.push_back(std::move(follower)); }) {
    asio::ip::tcp::socket socket(loop);
    socket.connect({asio::ip::address_v4::loopback(), listener.port()});
    link = std::make_shared<Link>(std::move(socket), 10s);
    link->hear([](const NodeMessage&) {}, [this](const LinkLoss&) { lost = true; });
    link->start();
    introduce(
        link, of_dialer, {.run_id = run_id, .node = {.host = "node1"}},
        [this](bool is_proven) {
          proven = is_proven;
          link->hear([this](NodeMessage message) { heard.push_back(std::move(message)); },
                     [this](const LinkLoss&) { lost = true; });
        },
        [this](const LinkLoss&) { lost = true; });
  }
  void until(const std::function<bool()>& reached) { test::drive(loop, reached); }

  asio::io_context loop;
  std::vector<std::shared_ptr<Follower>> followers = {};
  LinkListener listener;
  std::shared_ptr<Link> link = {};
  std::vector<NodeMessage> heard = {};
  std::optional<bool> proven = {};
  bool lost = false;
};

}  // namespace

TEST_CASE("introduction: without a secret a node says who it is", "[rendezvous]") {
  Meeting meeting({}, {});
  meeting.until([&] { return !meeting.followers.empty(); });
  CHECK(meeting.followers[0]->hello.node.host == "node1");
  CHECK_FALSE(meeting.followers[0]->is_proven);
  CHECK(meeting.proven == true);
}

TEST_CASE("introduction: nodes with one secret prove it to each other", "[rendezvous]") {
  Meeting meeting(kSecret, kSecret);
  meeting.until([&] { return !meeting.followers.empty(); });
  CHECK(meeting.followers[0]->is_proven);
  CHECK(meeting.proven == true);
}

TEST_CASE("introduction: a node that has another secret, or is the only one with one, says nothing",
          "[rendezvous]") {
  Meeting meeting(GENERATE(kOther, JobSecret()), kSecret);
  meeting.until([&] { return meeting.proven.has_value(); });
  CHECK(meeting.proven == false);
  CHECK(meeting.followers.empty());
}

TEST_CASE("introduction: a node without the secret is told so and not heard", "[rendezvous]") {
  Meeting meeting(kSecret, {});
  meeting.until([&] { return meeting.lost; });
  REQUIRE(meeting.heard.size() == 1);
  CHECK(std::get<RoundEnds>(meeting.heard[0]).over.text.starts_with("the nodes of this job prove a secret"));
  CHECK(meeting.followers.empty());
}

namespace {

// Who says what it likes.
struct Stranger {
  explicit Stranger(Meeting& meeting) {
    asio::ip::tcp::socket socket(meeting.loop);
    socket.connect({asio::ip::address_v4::loopback(), meeting.listener.port()});
    link = std::make_shared<Link>(std::move(socket), 10s);
    link->hear([this](NodeMessage message) { heard.push_back(std::move(message)); },
               [this](const LinkLoss&) { lost = true; });
    link->start();
  }
  std::shared_ptr<Link> link;
  std::vector<NodeMessage> heard = {};
  bool lost = false;
};

}  // namespace

TEST_CASE("introduction: what one node has proven is of no use to another", "[rendezvous]") {
  Meeting meeting(kSecret, kSecret);
  meeting.until([&] { return !meeting.followers.empty(); });
  const Hello overheard = meeting.followers[0]->hello;
  REQUIRE_FALSE(overheard.proof.empty());
  Stranger stranger(meeting);
  SECTION("said again") {
    stranger.link->send(overheard);
  }
  SECTION("said again after a challenge") {
    stranger.link->send(Challenge{"d"});
    meeting.until([&] { return !stranger.heard.empty(); });
    stranger.link->send(overheard);
  }
  SECTION("the listener's own proof, given back") {
    stranger.link->send(Challenge{"d"});
    meeting.until([&] { return !stranger.heard.empty(); });
    Hello hello = overheard;
    hello.proof = std::get<Proof>(stranger.heard[0]).proof;
    stranger.link->send(hello);
  }
  SECTION("a second challenge") {
    stranger.link->send(Challenge{"d"});
    stranger.link->send(Challenge{"d"});
  }
  meeting.until([&] { return stranger.lost; });
  CHECK(meeting.followers.size() == 1);
}
