// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/host.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "acc/store/client.hpp"
#include "support/catch.hpp"
#include "support/drive.hpp"

namespace host_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

LaunchPlan plan_of(int nodes) {
  LaunchPlan plan;
  plan.run_id = "job7";
  plan.rendezvous.backend = RendezvousKind::c10d;
  plan.rendezvous.min_nodes = plan.rendezvous.max_nodes = nodes;
  return plan;
}

// How long the kernel waits for the other side of a socket: a little longer than the node timeout.
std::chrono::milliseconds user_timeout_of(int socket) {
  int milliseconds = 0;
  socklen_t size = sizeof milliseconds;
  REQUIRE(::getsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &size) == 0);
  return std::chrono::milliseconds(milliseconds);
}

}  // namespace

TEST_CASE("host: its store has the port for nodes", "[rendezvous]") {
  boost::asio::io_context loop;
  const LaunchPlan plan = plan_of(2);
  std::uint16_t port = 0;
  {
    StoreServer free(loop, {});
    port = free.port();
  }
  const Host host(loop, plan, [](const NodeMessage&) {}, {"127.0.0.1"}, port, 4711, {});
  StoreClient client(loop);
  std::optional<std::string> messages;
  client.connect({"127.0.0.1", port}, acc::RunningClock::now() + 10s, [](const auto&) {}, [](const auto&) {});
  client.get(coordinator_key("job7"), [&](StoreOutcome, const auto& value) { messages = value; });
  test::drive(loop, [&] { return messages.has_value(); });
  CHECK(messages == "4711");
}

TEST_CASE("host: alone, it can leave at once", "[rendezvous]") {
  boost::asio::io_context loop;
  const LaunchPlan plan = plan_of(1);
  std::vector<NodeMessage> sent_to;
  Host host(loop, plan, [&](const NodeMessage& message) { sent_to.push_back(message); }, {"127.0.0.1"}, 0,
            4711, {});
  host.on_hello({.host = "node0", .addr = "127.0.0.1"}, {});
  host.on_message(Join{4000});
  test::drive(loop, [&] { return !sent_to.empty(); });
  CHECK(std::get<RoundBegins>(sent_to[0]).ready.round.master_port == 4000);
  bool is_alone = false;
  host.wait_until_alone(10s, [&] { is_alone = true; });
  CHECK(is_alone);
}

TEST_CASE("host: a silent node is waited for longer only while its loss would end the job", "[rendezvous]") {
  boost::asio::io_context loop;
  const LaunchPlan plan = plan_of(2);
  bool has_begun = false;
  const auto deliver = [&](const NodeMessage& message) {
    has_begun = has_begun || std::holds_alternative<RoundBegins>(message);
  };
  Host host(loop, plan, deliver, {"127.0.0.1"}, 0, 4711, {});
  net::tcp::acceptor acceptor(loop, {net::ip::make_address("127.0.0.1"), 0});
  net::tcp::socket near(loop);
  near.connect(acceptor.local_endpoint());
  const net::tcp::socket far = acceptor.accept();
  const int socket = near.native_handle();
  const Member member = {.connection = std::make_shared<NodeConnection>(std::move(near), 15s),
                         .hello = {.run_id = "job7", .node = {.host = "node1", .addr = "127.0.0.1"}},
                         .messages = {Join{4001}}};
  host.on_hello({.host = "node0", .addr = "127.0.0.1"}, {});
  host.adopt(std::make_shared<Member>(member));
  CHECK(user_timeout_of(socket) < 20s);
  host.on_message(Join{4000});
  test::drive(loop, [&] { return has_begun; });
  CHECK(user_timeout_of(socket) > 60s);
  host.coordinator().give_up("a worker has failed");
  CHECK(user_timeout_of(socket) < 20s);
}

// Of timers that expire together none can be cancelled by the handler of another.
TEST_CASE("host: no timer of a host that has been destroyed calls it", "[rendezvous]") {
  boost::asio::io_context loop;
  const LaunchPlan plan = plan_of(2);
  auto host = std::make_unique<Host>(
      loop, plan, [](const NodeMessage&) {}, std::vector<std::string>{"127.0.0.1"}, 0, 4711, Succession{});
  RunningTimer first(loop, RunningClock::now());
  first.async_wait([&](const boost::system::error_code&) { host.reset(); });
  host->coordinator().give_up("it ends");
  bool is_alone = false;
  host->wait_until_alone(0ms, [&] { is_alone = true; });
  test::drive(loop, [&] { return host == nullptr; });
  loop.poll();
  CHECK_FALSE(is_alone);
}

TEST_CASE("host: its store names a job that runs elsewhere", "[rendezvous]") {
  boost::asio::io_context loop;
  const LaunchPlan plan = plan_of(2);
  std::uint16_t port = 0;
  {
    StoreServer free(loop, {});
    port = free.port();
  }
  const Host host(loop, plan, [](const NodeMessage&) {}, {"127.0.0.1"}, port, 4711, {});
  StoreClient client(loop);
  client.connect({"127.0.0.1", port}, acc::RunningClock::now() + 10s, [](const auto&) {}, [](const auto&) {});
  client.set(running_key("job7"), "10.0.0.1:4000");
  CHECK_FALSE(host.is_running_at("10.0.0.1:4000"));
  test::drive(loop, [&] { return host.is_running_at("10.0.0.1:4000"); });
  CHECK_FALSE(host.is_running_at("10.0.0.2:4000"));
}

TEST_CASE("host: a job whose connections do not fit into the limit of open files is refused or warned of",
          "[rendezvous]") {
  LaunchPlan plan = plan_of(1000);
  plan.nproc_per_node = 8;
  CHECK_THROWS_WITH(check_open_files(1024, plan),
                    "this node hosts the job and may open 1024 files, too few for connections to 1000 nodes "
                    "(raise the hard limit of open files (ulimit -Hn) to 9096 or more)");
  CHECK(
      check_open_files(4096, plan) ==
      "this node may open 4096 files, too few for connections to 1000 nodes and 8 workers of each; raise the "
      "hard limit of open files (ulimit -Hn) to 9096 or more");
  CHECK(check_open_files(9096, plan).empty());
  // It may begin with less.
  plan.rendezvous.min_nodes = 1;
  CHECK_FALSE(check_open_files(1024, plan).empty());
}

}  // namespace host_test
