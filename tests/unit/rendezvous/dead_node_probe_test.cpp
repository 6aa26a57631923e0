// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/dead_node_probe.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "acc/rendezvous/node_ports.hpp"
#include "support/catch.hpp"

namespace dead_node_probe_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

struct Probe {
  asio::io_context loop = {};
  const ReservedPort closed{0};  // nobody listens there
  std::vector<StoreAddress> ended = {};
  DeadNodeProbe probe{loop, 10s, [this](const StoreAddress& node) { ended.push_back(node); }};
};

}  // namespace

TEST_CASE("dead_node_probe: tells of nodes whose port refuses connections, and of no other", "[rendezvous]") {
  Probe nodes;
  asio::ip::tcp::acceptor living(nodes.loop, {asio::ip::address_v4::loopback(), 0});
  const StoreAddress dead = {"127.0.0.1", nodes.closed.port()};
  nodes.probe.start({{"127.0.0.1", living.local_endpoint().port()}, dead, {"nowhere.invalid", 1}});
  CHECK(nodes.ended.empty());  // never during the call
  nodes.loop.run();
  CHECK(nodes.ended == std::vector<StoreAddress>{dead});
}

TEST_CASE("dead_node_probe: another start drops the attempts before it", "[rendezvous]") {
  Probe nodes;
  nodes.probe.start({{"127.0.0.1", nodes.closed.port()}});
  nodes.probe.start({});
  nodes.loop.run();
  CHECK(nodes.ended.empty());
}

TEST_CASE("dead_node_probe: tells nothing once it is stopped", "[rendezvous]") {
  Probe nodes;
  nodes.probe.start({{"127.0.0.1", nodes.closed.port()}});
  nodes.probe.stop();
  nodes.loop.run();
  CHECK(nodes.ended.empty());
}

}  // namespace dead_node_probe_test
