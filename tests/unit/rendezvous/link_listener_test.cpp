// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/link_listener.hpp"

#include "support/catch.hpp"
#include "support/drive.hpp"

using namespace acc;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

struct Caller {
  Caller(asio::io_context& loop, std::uint16_t port) {
    asio::ip::tcp::socket socket(loop);
    socket.connect({asio::ip::address_v4::loopback(), port});
    link = std::make_shared<Link>(std::move(socket), 10s);
    link->hear([this](NodeMessage message) { heard.push_back(std::move(message)); },
               [this](const LinkLoss&) { lost = true; });
    link->start();
  }
  std::shared_ptr<Link> link;
  std::vector<NodeMessage> heard = {};
  bool lost = false;
};

struct Listening {
  asio::io_context loop;
  std::vector<std::shared_ptr<Follower>> followers = {};
  LinkListener listener{loop, {"127.0.0.1"}, "job7", 10s, [this](std::shared_ptr<Follower> follower) {
                          followers.push_back(std::move(follower));
                        }};
};

}  // namespace

TEST_CASE("link_listener: a node of the run is handed over, with what it says until it is heard",
          "[rendezvous]") {
  Listening here;
  Caller caller(here.loop, here.listener.port());
  caller.link->send(Hello{.run_id = "job7", .node = {.host = "node1"}});
  caller.link->send(Join{7});
  test::drive(here.loop, [&] { return !here.followers.empty() && !here.followers[0]->said.empty(); });
  CHECK(here.followers[0]->hello.node.host == "node1");
  CHECK(here.followers[0]->said == std::vector<NodeMessage>{Join{7}});
}

TEST_CASE("link_listener: a node of another run is told so", "[rendezvous]") {
  Listening here;
  Caller caller(here.loop, here.listener.port());
  caller.link->send(Hello{.run_id = "job8"});
  test::drive(here.loop, [&] { return caller.lost; });
  REQUIRE(caller.heard.size() == 1);
  CHECK(std::get<RoundEnds>(caller.heard[0]).over.text == "this host runs another job than 'job8'");
  CHECK(here.followers.empty());
}

TEST_CASE("link_listener: whoever does not introduce itself is refused", "[rendezvous]") {
  Listening here;
  Caller caller(here.loop, here.listener.port());
  caller.link->send(Join{1});
  test::drive(here.loop, [&] { return caller.lost; });
  CHECK(caller.heard.empty());
  CHECK(here.followers.empty());
}
