// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/cluster_node.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>

#include "acc/base/log.hpp"
#include "acc/rendezvous/connected.hpp"
#include "acc/rendezvous/coordinator_lost.hpp"
#include "acc/rendezvous/hosting.hpp"
#include "acc/rendezvous/job_secret.hpp"
#include "acc/rendezvous/node_listener.hpp"
#include "acc/rendezvous/node_ports.hpp"
#include "acc/rendezvous/node_state.hpp"
#include "acc/rendezvous/searching.hpp"
#include "acc/store/client.hpp"
#include "acc/store/listener.hpp"
#include "support/catch.hpp"
#include "support/drive.hpp"
#include "support/etcd_server.hpp"
#include "support/kept_events.hpp"
#include "support/temporary_folder.hpp"

namespace cluster_node_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;
using test::KeptEvents;

namespace {

// A node of a job, on the test's loop.
struct Node {
  Node(boost::asio::io_context& loop, const LaunchPlan& the_plan)
      : plan(the_plan), rendezvous(std::make_unique<ClusterNode>(loop, plan)), events(*rendezvous) {}

  void stop() { rendezvous.reset(); }
  bool ready() const { return events.has<RoundReady>(); }
  bool over() const { return events.has<RoundOver>(); }
  Round round() const { return events.last<RoundReady>().round; }

  LaunchPlan plan;
  std::unique_ptr<ClusterNode> rendezvous;
  KeptEvents events;
};

// Nodes that meet on loopback.
struct Cluster {
  explicit Cluster(RendezvousKind backend, int min_nodes, int max_nodes) {
    plan.rendezvous.backend = backend;
    plan.rendezvous.min_nodes = min_nodes;
    plan.rendezvous.max_nodes = max_nodes;
    plan.rendezvous.endpoint_host = "127.0.0.1";
    plan.rendezvous.endpoint_port = port.port();
    plan.master_addr = "127.0.0.1";
    plan.master_port = plan.rendezvous.endpoint_port;
    plan.num_machines = max_nodes;
    plan.nproc_per_node = 2;
    plan.run_id = "job7";
  }

  Node& add(bool joins = true) {
    plan.rendezvous.node_rank = static_cast<int>(nodes.size());
    nodes.push_back(std::make_unique<Node>(loop, plan));
    if (joins) nodes.back()->rendezvous->join();
    return *nodes.back();
  }
  Node& operator[](std::size_t index) { return *nodes.at(index); }
  template <typename Condition>
  void until(Condition condition) {
    test::drive(loop, condition);
  }
  void until_all_ready() {
    until([this] {
      return std::ranges::all_of(nodes, [](const auto& node) { return !node->rendezvous || node->ready(); });
    });
  }
  void forget_events() {
    for (const auto& node : nodes) node->events.clear();
  }

  boost::asio::io_context loop;
  const ReservedPort port{0};  // no other test gets it before a node listens on it
  LaunchPlan plan;
  std::vector<std::unique_ptr<Node>> nodes = {};
};

}  // namespace

TEST_CASE("cluster_node: static: nodes have their given ranks, in any order of arrival", "[rendezvous]") {
  Cluster cluster(RendezvousKind::static_, 2, 2);
  cluster.add(false);
  cluster.add();
  cluster[0].rendezvous->join();
  cluster.until_all_ready();
  CHECK(cluster[0].round().machine_rank == 0);
  CHECK(cluster[1].round().machine_rank == 1);
  CHECK(cluster[1].round().first_rank == 2);
  CHECK(cluster[1].round().world_size == 4);
  CHECK(cluster[1].round().master_port == cluster.plan.master_port);
}

TEST_CASE("cluster_node: c10d: the first on the endpoint's machine hosts, the others connect to it",
          "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 3, 3);
  for (int i = 0; i < 3; ++i) cluster.add();
  cluster.until_all_ready();
  const Round first = cluster[0].round();
  CHECK(first.num_machines == 3);
  CHECK(first.world_size == 6);
  CHECK(first.master_port != cluster.plan.rendezvous.endpoint_port);
  std::set<int> ranks;
  for (const auto& node : cluster.nodes) {
    ranks.insert(node->round().first_rank);
    CHECK(node->round().master_port == first.master_port);
  }
  CHECK(ranks == std::set<int>{0, 2, 4});
}

TEST_CASE("cluster_node: a node on the endpoint's machine hosts as soon as the port is free",
          "[rendezvous]") {
  using boost::asio::ip::tcp;
  Cluster cluster(RendezvousKind::c10d, 2, 2);
  // A host that is about to end: it has the port, and answers nobody.
  tcp::acceptor ending(cluster.loop, {boost::asio::ip::address_v4::loopback(), cluster.port.port()});
  bool is_asked = false;
  ending.async_accept([&](const boost::system::error_code&, const tcp::socket&) { is_asked = true; });
  cluster.add();
  cluster.until([&] { return is_asked; });
  CHECK(cluster[0].rendezvous->state() == "searching");
  ending.close();
  cluster.until([&] { return cluster[0].rendezvous->state() == "hosting"; });
  cluster.add();
  cluster.until_all_ready();
  CHECK(cluster[1].round().num_machines == 2);
}

TEST_CASE("cluster_node: a failure ends the round for all, and the next round has a new store",
          "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 2, 2);
  cluster.plan.max_restarts = 1;
  cluster.add();
  cluster.add();
  cluster.until_all_ready();
  const std::uint16_t old_port = cluster[0].round().master_port;
  cluster.forget_events();
  cluster[1].rendezvous->fail({.restart = true, .failure = "f"});
  cluster.until([&] { return cluster[0].over() && cluster[1].over(); });
  CHECK(cluster[0].events.last<RoundOver>() == RoundOver{.restart = true, .failure = "f"});
  cluster[0].rendezvous->join();
  cluster[1].rendezvous->join();
  cluster.until_all_ready();
  CHECK(cluster[0].events.last<RoundReady>().restarts == 1);
  CHECK(cluster[1].events.last<RoundReady>().restarts == 1);
  CHECK(cluster[0].round().master_port != old_port);
}

TEST_CASE("cluster_node: a notice of the end on one node, whichever it is, reaches the others",
          "[rendezvous]") {
  const auto sender = static_cast<std::size_t>(GENERATE(0, 1, 2));
  Cluster cluster(RendezvousKind::static_, 3, 3);
  for (int i = 0; i < 3; ++i) cluster.add();
  cluster.until_all_ready();
  cluster[sender].rendezvous->announce_end(SIGUSR1);
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != sender) cluster.until([&] { return cluster[i].events.has<EndNotice>(); });
  }
  for (const auto& node : cluster.nodes) node->rendezvous->finish();
  cluster.until([&] { return cluster[sender].events.has<JobDone>(); });
  CHECK_FALSE(cluster[sender].events.has<EndNotice>());
  CHECK(cluster[sender == 0 ? 1 : 0].events.last<EndNotice>().signal == SIGUSR1);
  CHECK_FALSE(cluster[sender == 0 ? 1 : 0].events.last<EndNotice>().host.empty());
}

TEST_CASE("cluster_node: the node that leads learns how far all ranks are, and says which are slow",
          "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 3, 3);
  for (int i = 0; i < 3; ++i) cluster.add();
  cluster.until_all_ready();
  std::vector<NodeProgress> progress;
  std::array<std::vector<SlowRank>, 3> slow;
  for (std::size_t i = 0; i < 3; ++i)
    cluster[i].rendezvous->on_ranks(
        {.progress = [&](const NodeProgress& node) { progress.push_back(node); },
         .slow_ranks = [&, i](const std::vector<SlowRank>& ranks) { slow.at(i) = ranks; }});
  const std::vector<RankProgress> ranks = {{4, {.pid = 7, .steps = 812}}};
  CHECK_FALSE(cluster[0].rendezvous->tell_progress(ranks));
  CHECK(cluster[1].rendezvous->tell_progress(ranks));
  cluster.until([&] { return !progress.empty(); });
  CHECK(progress[0].ranks == ranks);
  CHECK(progress[0].node > 0);
  CHECK_FALSE(progress[0].host.empty());
  const std::vector<SlowRank> slow_ranks = {{4, acc::Section::data}};
  cluster[0].rendezvous->tell_slow(slow_ranks);
  cluster.until([&] { return slow[1] == slow_ranks && slow[2] == slow_ranks; });
  CHECK(slow[0].empty());
}

TEST_CASE("cluster_node: all nodes hear that the job hangs when the ranks of all are idle", "[rendezvous]") {
  const RendezvousKind backend = GENERATE(RendezvousKind::c10d, RendezvousKind::static_);
  Cluster cluster(backend, 3, 3);
  for (int i = 0; i < 3; ++i) cluster.add();
  CHECK(cluster[0].rendezvous->tell_hang({}) == "the nodes have not met");
  cluster.until_all_ready();
  std::array<std::vector<JobHangStage>, 3> stages;
  for (std::size_t i = 0; i < 3; ++i)
    cluster[i].rendezvous->on_ranks({.hang = [&, i](const JobHang& hang) {
      stages.at(i).push_back(hang.stage);
      const auto answer =
          hang.stage == JobHangStage::suspected ? NodeHangStage::confirmed : NodeHangStage::examined;
      cluster[i].rendezvous->tell_hang({.stage = answer, .number = hang.number});
    }});
  for (const auto& node : cluster.nodes)
    CHECK(node->rendezvous->tell_hang({.stage = NodeHangStage::idle}).empty());
  const std::vector all = {JobHangStage::suspected, JobHangStage::found, JobHangStage::examined};
  cluster.until(
      [&] { return std::ranges::all_of(stages, [&](const auto& of_node) { return of_node == all; }); });
}

TEST_CASE("cluster_node: each node gets the ranks of all others while it looks", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 3, 3);
  for (int i = 0; i < 3; ++i) cluster.add();
  CHECK(cluster[0].rendezvous->want_ranks() == "the nodes have not met");
  cluster.until_all_ready();
  std::array<std::vector<PeerNode>, 3> peers;
  std::array<std::map<int, std::string>, 3> reports;
  for (std::size_t i = 0; i < 3; ++i)
    cluster[i].rendezvous->on_ranks(
        {.ranks_wanted = [&, i] { cluster[i].rendezvous->report_ranks("of " + std::to_string(i)); },
         .peers = [&, i](const std::vector<PeerNode>& nodes) { peers.at(i) = nodes; },
         .report = [&, i](const RankReport& report) { reports.at(i)[report.node_rank] = report.ranks; }});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(cluster[i].rendezvous->want_ranks().empty());
    cluster.until([&] { return reports.at(i).size() == 2; });
    CHECK(peers.at(i).size() == 2);
    for (std::size_t peer = 0; peer < 3; ++peer) {
      const int rank = cluster[peer].round().machine_rank;
      CHECK(reports.at(i)[rank] == (peer == i ? "" : "of " + std::to_string(peer)));
    }
  }
}

namespace {

// A coordinator of an older acc, which takes a message that it does not know for an error. It begins a round
// as soon as a node asks for one.
struct OlderHost {
  explicit OlderHost(Cluster& cluster)
      : store(cluster.loop, {.port = cluster.port.port()}),
        listener(cluster.loop, {"127.0.0.1"}, "job7", job_secret(cluster.plan.rendezvous), 10s,
                 [this](const std::shared_ptr<Member>& member) { on_member(member); }) {
    store.set(coordinator_key("job7"), std::to_string(listener.port()));
    store.serve({.others = StoreClients::Others::strangers});
  }

  void on_member(const std::shared_ptr<Member>& member) {
    node = member->connection;
    node->set_handlers([this](const NodeMessage& message) { on_message(message); },
                       [](const ConnectionLoss&) {});
    for (const NodeMessage& message : member->messages) on_message(message);
  }
  void on_message(const NodeMessage& message) {
    messages.push_back(message);
    if (std::holds_alternative<Join>(message))
      node->send(
          RoundBegins{.number = 1, .coordinator = {.host = "older", .protocol = kProtocolOfEndNotice}});
  }

  StoreServer store;
  NodeListener listener;
  std::shared_ptr<NodeConnection> node = {};
  std::vector<NodeMessage> messages = {};
};

}  // namespace

TEST_CASE("cluster_node: a coordinator of an older acc is told nothing of ranks", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 2, 2);
  const OlderHost host(cluster);
  cluster.plan.rendezvous.is_host = false;
  Node& node = cluster.add();
  cluster.until([&] { return node.ready(); });
  CHECK_FALSE(node.rendezvous->tell_progress({{0, {.steps = 1}}}));
  node.rendezvous->tell_slow({{0, acc::Section::data}});
  CHECK(node.rendezvous->want_ranks() == "the node that leads the job runs an older acc");
  CHECK(node.rendezvous->tell_hang({}) == "the node that leads the job runs an older acc");
  node.rendezvous->finish();
  cluster.until([&] { return host.messages.size() > 1; });
  CHECK(host.messages[1] == NodeMessage(WorkersDone{1}));
}

namespace {

// The coordinator of a round of three nodes. The one under test is its only successor, the third is `third`.
struct RoundOfThree : Cluster {
  RoundOfThree() : Cluster(RendezvousKind::c10d, 2, 3) {
    plan.rendezvous.is_host = false;
    store.set(coordinator_key("job7"), std::to_string(listener.port()));
    store.serve({.others = StoreClients::Others::strangers});
    add();
    until([this] { return nodes[0]->ready(); });
  }

  void on_member(const Member& member) {
    node_port = member.hello.node.node_port;
    to_node = member.connection;
    to_node->set_handlers([](const NodeMessage&) {}, [](const ConnectionLoss&) {});
    to_node->send(RoundBegins{.number = 1, .successors = {member.hello.node}, .nodes = 3});
  }
  // The node ends the round, and asks for the next.
  void send(const NodeMessage& message) {
    to_node->send(message);
    until([this] { return nodes[0]->over(); });
    CHECK(nodes[0]->events.last<RoundOver>().restart);
    nodes[0]->rendezvous->join();
  }
  void connect_third() {
    boost::asio::ip::tcp::socket socket(loop);
    socket.connect({boost::asio::ip::address_v4::loopback(), node_port});
    third = std::make_shared<NodeConnection>(std::move(socket), 60s);
    third->set_handlers([this](const NodeMessage& message) { to_third.push_back(message); },
                        [](const ConnectionLoss&) {});
    third->start();
    third->send(
        Hello{.run_id = "job7", .node = {.addr = "127.0.0.1", .node_port = 9}, .history = {.round = 1}});
    bool is_answered = false;
    third->on_next_bytes([&] { is_answered = true; });
    until([&] { return is_answered; });
  }
  bool is_led_on() const { return nodes[0]->rendezvous->state() == "hosting as successor"; }

  StoreServer store{loop, {.port = port.port()}};
  NodeListener listener{loop,   {"127.0.0.1"},
                        "job7", job_secret(plan.rendezvous),
                        60s,    [this](const std::shared_ptr<Member>& member) { on_member(*member); }};
  std::uint16_t node_port = 0;
  std::shared_ptr<NodeConnection> to_node = {};
  std::shared_ptr<NodeConnection> third = {};
  std::vector<NodeMessage> to_third = {};
};

}  // namespace

TEST_CASE("cluster_node: a node to which the coordinator yields leads the job, although it did not yet",
          "[rendezvous]") {
  RoundOfThree job;
  job.connect_third();
  job.send(Moved{"127.0.0.1", job.node_port});
  job.until([&] { return job.is_led_on(); });
}

TEST_CASE("cluster_node: a node without which the others went on sends them those that wait for it to lead",
          "[rendezvous]") {
  RoundOfThree job;
  const NodeMessage answer = Moved{"127.0.0.1", job.listener.port()};
  SECTION("before it was dropped") {
    job.connect_third();
    job.send(Dropped{"it was silent"});
  }
  SECTION("or after it") {
    job.send(Dropped{"it was silent"});
    job.connect_third();
  }
  job.until([&] { return !job.to_third.empty(); });
  CHECK(job.to_third == std::vector{answer});
}

TEST_CASE("cluster_node: all succeed, and the host leaves last", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 2, 2);
  cluster.add();
  cluster.add();
  cluster.until_all_ready();
  cluster[0].rendezvous->finish();
  cluster[1].rendezvous->finish();
  cluster.until([&] { return cluster[0].events.has<JobDone>() && cluster[1].events.has<JobDone>(); });
  cluster[0].rendezvous->leave("", 0);
  CHECK_FALSE(cluster[0].events.has<Left>());
  cluster[1].rendezvous->leave("", 0);
  cluster.until([&] { return cluster[0].events.has<Left>() && cluster[1].events.has<Left>(); });
}

TEST_CASE("cluster_node: a node that ends when its workers have succeeded disturbs nobody", "[rendezvous]") {
  Cluster cluster(GENERATE(RendezvousKind::static_, RendezvousKind::c10d), 3, 3);
  for (int i = 0; i < 3; ++i) cluster.add();
  cluster.until_all_ready();
  cluster[2].rendezvous->finish();
  cluster.loop.run_for(100ms);
  cluster[2].stop();
  cluster.loop.run_for(500ms);
  for (const std::size_t i : {0U, 1U}) {
    CHECK_FALSE(cluster[i].over());
    cluster[i].rendezvous->finish();
  }
  for (const std::size_t i : {0U, 1U}) cluster.until([&] { return cluster[i].events.has<JobDone>(); });
}

TEST_CASE("cluster_node: all nodes notice a lost one, and a range goes on without it", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 2, 3);
  for (int i = 0; i < 3; ++i) cluster.add();
  cluster.until_all_ready();
  cluster.forget_events();
  cluster[2].stop();
  cluster.until([&] { return cluster[0].over() && cluster[1].over(); });
  CHECK(cluster[0].events.last<RoundOver>().restart);
  cluster[0].rendezvous->join();
  cluster[1].rendezvous->join();
  cluster.until_all_ready();
  CHECK(cluster[0].round().num_machines == 2);
  CHECK(cluster[0].events.last<RoundReady>().restarts == 0);
}

TEST_CASE("cluster_node: the host is lost, and the others go on with a new one", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 2, 4);
  cluster.plan.rendezvous.node_timeout = 500ms;
  for (int i = 0; i < 4; ++i) cluster.add();
  cluster.until_all_ready();
  cluster.forget_events();
  cluster[0].stop();
  cluster.until([&] { return cluster[1].over() && cluster[2].over() && cluster[3].over(); });
  CHECK(cluster[1].events.last<RoundOver>().restart);
  for (std::size_t i = 1; i < 4; ++i) cluster[i].rendezvous->join();
  cluster.until_all_ready();
  CHECK(cluster[1].round().num_machines == 3);
  CHECK(cluster[1].round().master_port == cluster[3].round().master_port);
  // The new one learns how far the ranks are, as the lost one did.
  std::vector<NodeProgress> progress;
  int senders = 0;
  for (std::size_t i = 1; i < 4; ++i) {
    cluster[i].rendezvous->on_ranks({.progress = [&](const auto& node) { progress.push_back(node); }});
    if (cluster[i].rendezvous->tell_progress({{cluster[i].round().first_rank, {}}})) ++senders;
  }
  CHECK(senders == 2);
  cluster.until([&] { return progress.size() == 2; });
}

TEST_CASE("cluster_node: restarts without progress are counted over all nodes, also by a new host",
          "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 2, 3);
  cluster.plan.rendezvous.node_timeout = 500ms;
  cluster.plan.max_restarts = 9;
  cluster.plan.restarts_without_progress = 2;
  for (int i = 0; i < 3; ++i) cluster.add();
  cluster.until_all_ready();
  const auto fail = [&](std::size_t node) {
    cluster.forget_events();
    cluster[node].rendezvous->fail(
        {.restart = true, .failure = "f", .exit_code = 7, .reached = {.is_known = true, .steps = 3}});
  };
  const auto all_over = [&] {
    return std::ranges::all_of(cluster.nodes,
                               [](const auto& node) { return !node->rendezvous || node->over(); });
  };
  const auto meet_again = [&] {
    cluster.until(all_over);
    for (const auto& node : cluster.nodes) {
      if (node->rendezvous) node->rendezvous->join();
    }
    cluster.until_all_ready();
  };
  fail(1);
  meet_again();
  fail(2);
  meet_again();
  cluster.forget_events();
  cluster[0].stop();
  meet_again();
  fail(1);
  cluster.until(all_over);
  for (std::size_t node = 1; node < 3; ++node) {
    const RoundOver verdict = cluster[node].events.last<RoundOver>();
    CHECK_FALSE(verdict.restart);
    CHECK(verdict.exit_code == 7);
    CHECK(verdict.reason.starts_with("not restarted: no rank got beyond step 3 "));
  }
}

TEST_CASE("cluster_node: at another launcher's store restarts without progress are refused", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 2, 2);
  cluster.plan.restarts_without_progress = 2;
  cluster.plan.rendezvous.is_host = false;
  const StoreServer other_store(cluster.loop,
                                {.addresses = {"127.0.0.1"}, .port = cluster.plan.rendezvous.endpoint_port});
  cluster.add();
  cluster.until([&] { return cluster[0].over(); });
  const RoundOver verdict = cluster[0].events.last<RoundOver>();
  CHECK(verdict.exit_code == 2);
  CHECK(verdict.text.ends_with(
      "is another launcher's store, where no node of acc decides on restarts: leave out "
      "--restarts-without-progress"));
}

TEST_CASE("cluster_node: a successor that was stopped is redirected to the others", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 2, 4);
  cluster.plan.rendezvous.node_timeout = 500ms;
  cluster.plan.rendezvous.is_host = true;
  cluster.add();
  cluster.plan.rendezvous.is_host = false;
  struct Part {
    boost::asio::io_context loop = {};
    std::unique_ptr<Node> node = {};
    bool stands_still = false;
  };
  std::array<Part, 3> parts;
  const auto until = [&](auto condition) {
    const auto limit = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > limit)
        throw std::runtime_error("what was waited for did not come");
      cluster.loop.restart();
      cluster.loop.poll();
      for (Part& part : parts) {
        part.loop.restart();
        if (!part.stands_still) part.loop.run_for(1ms);
      }
    }
  };
  const auto all_running = [&](auto condition) {
    return std::ranges::all_of(
        parts, [&](const Part& part) { return part.stands_still || std::invoke(condition, *part.node); });
  };
  const auto join = [&] {
    for (Part& part : parts) {
      part.node->events.clear();
      if (!part.stands_still) part.node->rendezvous->join();
    }
  };
  for (Part& part : parts) {
    part.node = std::make_unique<Node>(part.loop, cluster.plan);
    part.node->rendezvous->join();
  }
  until([&] { return cluster[0].ready() && all_running(&Node::ready); });
  Part& successor =
      *std::ranges::find(parts, 1, [](const Part& part) { return part.node->round().machine_rank; });

  successor.stands_still = true;
  cluster[0].stop();
  until([&] { return all_running(&Node::over); });
  join();
  until([&] { return all_running(&Node::ready); });
  for (const Part& part : parts) {
    if (!part.stands_still) CHECK(part.node->round().num_machines == 2);
  }

  successor.stands_still = false;
  until([&] { return successor.node->over(); });
  successor.node->rendezvous->join();
  until([&] { return all_running(&Node::over); });
  join();
  until([&] { return all_running(&Node::ready); });
  CHECK(successor.node->round().num_machines == 3);
}

namespace {

// Three nodes that were in a round, sorted as they lead the job.
struct JobOfThree : Cluster {
  explicit JobOfThree(int min_nodes) : Cluster(RendezvousKind::c10d, min_nodes, 3) {
    plan.rendezvous.last_call_timeout = 60s;
    for (int i = 0; i < 3; ++i) add();
    until_all_ready();
    std::ranges::sort(nodes.begin() + 1, nodes.end(), {},
                      [](const auto& node) { return node->round().machine_rank; });
    forget_events();
  }

  std::string state(std::size_t index) const { return nodes.at(index)->rendezvous->state(); }
  void lose(std::size_t index) { nodes.at(index)->stop(); }
  void goes_on(std::size_t index, int other_nodes) {
    until([&] { return nodes[index]->over(); });
    CHECK(nodes[index]->events.last<RoundOver>().restart);
    nodes[index]->rendezvous->join();
    until([&] { return nodes[index]->ready(); });
    CHECK(nodes[index]->round().num_machines == 1 + other_nodes);
  }
};

}  // namespace

TEST_CASE("cluster_node: the host and another node are lost at once, and the last one goes on",
          "[rendezvous]") {
  JobOfThree cluster(1);
  const std::size_t lost = GENERATE(1U, 2U);
  CAPTURE(lost);
  cluster.lose(0);
  cluster.lose(lost);
  cluster.goes_on(3 - lost, 0);
}

TEST_CASE("cluster_node: the successor is lost while it gathers the nodes, and the last one goes on",
          "[rendezvous]") {
  JobOfThree cluster(1);
  cluster.lose(0);
  cluster.until(
      [&] { return cluster.state(1) == "hosting as successor" && cluster.state(2) == "connected"; });
  SECTION("the node that it waits for") {
    cluster.lose(1);
    cluster.goes_on(2, 0);
  }
  SECTION("or itself, when that one is lost") {
    cluster.lose(2);
    cluster.goes_on(1, 0);
  }
}

TEST_CASE("cluster_node: a new host that has yielded to a successor hosts again when that is lost",
          "[rendezvous]") {
  JobOfThree cluster(2);
  cluster.lose(0);
  cluster.until(
      [&] { return cluster.state(1) == "hosting as successor" && cluster.state(2) == "connected"; });
  cluster.add();
  cluster.until([&] { return cluster.state(3) == "hosting"; });
  cluster.until([&] { return cluster.state(3) == "connected"; });
  cluster.lose(1);
  cluster.until([&] { return cluster.state(3) == "hosting"; });
  cluster.goes_on(2, 1);
  cluster.until([&] { return cluster[3].ready(); });
}

TEST_CASE("cluster_node: with a fixed number of nodes the loss of the host ends the job", "[rendezvous]") {
  Cluster cluster(RendezvousKind::static_, 2, 2);
  cluster.add();
  cluster.add();
  cluster.until_all_ready();
  cluster[0].stop();
  cluster.until([&] { return cluster[1].over(); });
  CHECK(cluster[1].events.last<RoundOver>() ==
        RoundOver{.text = "the node that hosts the job was lost: its connection closed", .exit_code = 75});
}

TEST_CASE("cluster_node: who joins when the job has ended meanwhile is told again", "[rendezvous]") {
  Cluster cluster(RendezvousKind::static_, 2, 2);
  cluster.add();
  cluster.add();
  cluster.until_all_ready();
  cluster[0].stop();
  cluster.until([&] { return cluster[1].over(); });
  cluster.forget_events();
  cluster[1].rendezvous->join();
  REQUIRE(cluster[1].over());
  CHECK(cluster[1].events.last<RoundOver>().exit_code == 75);
}

TEST_CASE("cluster_node: static: a rank is not given to another while its node is heard", "[rendezvous]") {
  Cluster cluster(RendezvousKind::static_, 2, 2);
  cluster.plan.max_restarts = 1;
  cluster.plan.rendezvous.node_timeout = 400ms;
  cluster.add();
  cluster.add();
  cluster.until_all_ready();
  cluster.add(false).plan.rendezvous.node_rank = 1;
  cluster[2].rendezvous->join();
  cluster.until([&] { return cluster[2].over(); });
  CHECK(cluster[2].events.last<RoundOver>().exit_code == 2);
  CHECK_FALSE(cluster[1].over());
}

TEST_CASE("cluster_node: a job of fixed size that loses its host waits for it while restarts are left",
          "[rendezvous]") {
  const auto backend = GENERATE(RendezvousKind::static_, RendezvousKind::c10d);
  Cluster cluster(backend, 3, 3);
  cluster.plan.max_restarts = 1;
  for (int i = 0; i < 3; ++i) cluster.add();
  cluster.until_all_ready();
  cluster.forget_events();
  cluster[0].stop();
  cluster.until([&] { return cluster[1].over() && cluster[2].over(); });
  CHECK(cluster[1].events.last<RoundOver>().restart);
  cluster.forget_events();
  cluster[1].rendezvous->join();
  cluster[2].rendezvous->join();
  // It comes back, or another node replaces it.
  cluster.plan.rendezvous.node_rank = 0;
  Node host(cluster.loop, cluster.plan);
  host.plan.rendezvous.node_rank = 0;
  host.rendezvous->join();
  cluster.until([&] { return host.ready() && cluster[1].ready() && cluster[2].ready(); });
  CHECK(host.round().num_machines == 3);
  CHECK(host.events.last<RoundReady>().restarts == 1);
  CHECK(cluster[2].round().master_port == host.round().master_port);
}

TEST_CASE("cluster_node: a spare takes the place of the host", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 2, 2);
  cluster.plan.max_restarts = 1;
  cluster.add();
  cluster.add();
  cluster.until_all_ready();
  Node& spare = cluster.add();
  cluster.until([&] { return spare.events.has<Notice>(); });
  cluster[0].stop();
  cluster.until([&] { return cluster[1].over(); });
  cluster.forget_events();
  cluster[1].rendezvous->join();
  cluster.until([&] { return spare.ready() && cluster[1].ready(); });
  CHECK(spare.round().num_machines == 2);
  CHECK(spare.events.last<RoundReady>().restarts == 1);
}

namespace {

// Adds a spare with a short join timeout, longer where it was over before the node had met the others, and
// lets that timeout pass.
Node& add_waiting_spare(Cluster& cluster) {
  const auto other_nodes = cluster.nodes.size();
  for (cluster.plan.rendezvous.join_timeout = 250ms;; cluster.plan.rendezvous.join_timeout *= 2) {
    Node& spare = cluster.add();
    cluster.until([&] { return spare.over() || spare.events.has<Notice>(); });
    if (!spare.over()) {
      boost::asio::steady_timer timer(cluster.loop, cluster.plan.rendezvous.join_timeout * 3 / 2);
      bool passed = false;
      timer.async_wait([&](const boost::system::error_code&) { passed = true; });
      cluster.until([&] { return passed; });
      return spare;
    }
    cluster.nodes.resize(other_nodes);
  }
}

}  // namespace

TEST_CASE("cluster_node: a spare waits longer than the join timeout", "[rendezvous]") {
  const bool in_file = GENERATE(false, true);
  const test::TemporaryFolder folder;
  Cluster cluster(RendezvousKind::c10d, 2, 2);
  cluster.plan.max_restarts = 1;
  int address = 0;
  const auto next_address = [&] {
    if (!in_file) return;
    cluster.plan.rendezvous.store_file = folder.path() / "job7";
    // One process has one address on the backend.
    cluster.plan.rendezvous.local_addr = "127.0.0." + std::to_string(++address);
  };
  for (int i = 0; i < 2; ++i) {
    next_address();
    cluster.add();
  }
  cluster.until_all_ready();
  next_address();
  Node& spare = add_waiting_spare(cluster);
  CHECK_FALSE(spare.over());
  CHECK_FALSE(cluster[0].over());
  CHECK_FALSE(cluster[1].over());
  if (in_file) return;  // what others write there is noticed later
  cluster[1].stop();
  cluster.until([&] { return cluster[0].over(); });
  cluster.forget_events();
  cluster[0].rendezvous->join();
  cluster.until([&] { return cluster[0].ready() && spare.ready(); });
}

TEST_CASE("cluster_node: a signal to the host ends a job that needs it, with its exit code", "[rendezvous]") {
  const auto backend = GENERATE(RendezvousKind::static_, RendezvousKind::c10d);
  Cluster cluster(backend, 2, 2);
  cluster.add();
  cluster.add();
  cluster.until_all_ready();
  cluster[0].rendezvous->leave("it was asked to end by SIGTERM", 143);
  cluster.until([&] { return cluster[1].over(); });
  CHECK(cluster[1].events.last<RoundOver>().exit_code == 143);
  CHECK_FALSE(cluster[1].events.last<RoundOver>().restart);
}

TEST_CASE("cluster_node: any node stops a job that could go on without it", "[rendezvous]") {
  const int stopping = GENERATE(0, 1);
  Cluster cluster(RendezvousKind::c10d, 1, 2);
  cluster.plan.max_restarts = 3;
  cluster.plan.rendezvous.last_call_timeout = 1h;
  cluster.add();
  cluster.add();
  cluster.until_all_ready();
  CHECK(cluster[0].rendezvous->stops_alone().empty());
  CHECK(cluster[1].rendezvous->stops_alone().empty());
  cluster[static_cast<std::size_t>(stopping)].rendezvous->stop_job(143);
  cluster.until([&] { return cluster[0].over() && cluster[1].over(); });
  for (const std::size_t node : {0U, 1U}) {
    CHECK(cluster[node].events.last<RoundOver>().exit_code == 143);
    CHECK_FALSE(cluster[node].events.last<RoundOver>().restart);
  }
}

TEST_CASE("cluster_node: who cannot stop the job on other nodes says why", "[rendezvous]") {
  SECTION("a spare") {
    Cluster cluster(RendezvousKind::c10d, 1, 1);
    cluster.add();
    cluster.until_all_ready();
    const Node& spare = add_waiting_spare(cluster);
    CHECK(spare.rendezvous->stops_alone() == "this node is a spare");
    spare.rendezvous->stop_job(143);
    spare.rendezvous->leave("", 143);
    cluster.until([&] { return spare.events.has<Left>(); });
    CHECK_FALSE(cluster[0].over());
  }
  SECTION("a node that has found no other") {
    Cluster cluster(RendezvousKind::static_, 2, 2);
    cluster.add(false);
    cluster.add();
    CHECK(cluster[1].rendezvous->stops_alone() == "the nodes have not met");
  }
}

TEST_CASE("cluster_node: a node joins a running job of a range", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 1, 2);
  cluster.plan.rendezvous.last_call_timeout = 1ms;
  cluster.add();
  cluster.until_all_ready();
  CHECK(cluster[0].round().num_machines == 1);
  cluster.forget_events();
  cluster.add();
  cluster.until([&] { return cluster[0].over(); });
  CHECK(cluster[0].events.last<RoundOver>().restart);
  cluster[0].rendezvous->join();
  cluster.until_all_ready();
  CHECK(cluster[0].round().num_machines == 2);
  CHECK(cluster[1].round().num_machines == 2);
}

TEST_CASE("cluster_node: the timeout names the missing nodes", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 2, 2);
  cluster.plan.rendezvous.join_timeout = 100ms;
  Node& node = cluster.add();
  cluster.until([&] { return node.over(); });
  const RoundOver verdict = node.events.last<RoundOver>();
  CHECK(verdict.exit_code == 75);
  CHECK(verdict.text.starts_with("the nodes of the job did not meet within 0 s: 1 of 2 nodes are here: "));
}

TEST_CASE("cluster_node: time in which the node stood still is not of the join timeout", "[rendezvous]") {
  Cluster cluster(GENERATE(RendezvousKind::static_, RendezvousKind::c10d), 2, 2);
  // So much a loaded machine may be late.
  cluster.plan.rendezvous.join_timeout = 3s;
  Node& first = cluster.add();
  test::stand_still(cluster.loop, 3200ms);
  cluster.add();
  cluster.until([&] { return first.ready() || first.over(); });
  CHECK_FALSE(first.over());
}

namespace {

// How a node ends that finds nobody within a short join timeout, longer where it was over before the first
// try.
RoundOver end_of_lonely_node(Cluster& cluster) {
  for (cluster.plan.rendezvous.join_timeout = 100ms;; cluster.plan.rendezvous.join_timeout *= 2) {
    Node& node = cluster.add();
    cluster.until([&] { return node.over(); });
    RoundOver end = node.events.last<RoundOver>();
    if (end.text.find("last try: none yet") == std::string::npos) return end;
    cluster.nodes.clear();
  }
}

}  // namespace

TEST_CASE("cluster_node: reports that no node hosts", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 2, 2);
  cluster.plan.rendezvous.is_host = false;
  const RoundOver end = end_of_lonely_node(cluster);
  CHECK(end.exit_code == 75);
  CHECK(end.text.find("Connection refused") != std::string::npos);
}

TEST_CASE("cluster_node: where read_timeout is given, no node looks for a store for longer", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 3, 3);
  RendezvousPlan& settings = cluster.plan.rendezvous;
  settings.endpoint_timeout = 100ms;
  std::string expected = ": no store has answered for 0.1 s (read_timeout)";
  boost::asio::ip::tcp::acceptor silent(cluster.loop, {boost::asio::ip::make_address("127.0.0.1"), 0});
  SECTION("that is not there") {
    settings.is_host = false;
    expected += ": Connection refused (check ";
  }
  SECTION("that does not answer") {
    settings.is_host = false;
    settings.endpoint_port = silent.local_endpoint().port();
    expected += " (check ";
  }
  SECTION("but after its answer it waits for others until the join timeout") {
    settings.join_timeout = 400ms;
    cluster.add();
    expected = "the nodes of the job did not meet within 0 s: 2 of 3 nodes are here: ";
  }
  Node& node = cluster.add();
  cluster.until([&] { return node.over(); });
  CHECK(node.events.last<RoundOver>().exit_code == 75);
  CHECK(node.events.last<RoundOver>().text.find(expected) != std::string::npos);
}

TEST_CASE("cluster_node: static: node 0 says that others cannot find it at the endpoint", "[rendezvous]") {
  Cluster cluster(RendezvousKind::static_, 2, 2);
  SECTION("unknown") {
    cluster.plan.rendezvous.endpoint_host = "no such name";
    cluster.add();
    cluster.until([&] { return cluster[0].events.has<Notice>(); });
    CHECK(cluster[0].events.last<Notice>().text.starts_with("no such name cannot be resolved here: "));
  }
  SECTION("another machine's") {
    cluster.plan.rendezvous.endpoint_host = "192.0.2.1";
    cluster.add();
    cluster.until([&] { return cluster[0].events.has<Notice>(); });
    CHECK(cluster[0].events.last<Notice>().text.starts_with("192.0.2.1 is not an address of this machine"));
  }
}

TEST_CASE("cluster_node: asks with a pause where the host's port for nodes leads nowhere", "[rendezvous]") {
  const bool refused = GENERATE(true, false);
  int tries = 0;
  log::open({.level = log::Level::debug});
  const log::ConsoleRedirect console([&](std::string_view line) {
    if (line.find("says that nodes connect to") != std::string_view::npos) ++tries;
  });
  Cluster cluster(RendezvousKind::c10d, 2, 2);
  StoreServer store(cluster.loop, {.port = cluster.port.port()});
  const ReservedPort refusing{0};
  const auto closing = listen_on(cluster.loop, {"127.0.0.1"}, 0).front();
  closing->start([](boost::asio::ip::tcp::socket) {});
  store.set(coordinator_key("job7"), std::to_string(refused ? refusing.port() : closing->port()));
  store.serve({.others = StoreClients::Others::strangers});
  cluster.plan.rendezvous.join_timeout = 300ms;
  cluster.plan.rendezvous.is_host = false;
  Node& node = cluster.add();
  cluster.until([&] { return node.over(); });
  CHECK(tries < 5);
  closing->close();
  log::open({});
}

TEST_CASE("cluster_node: reports that the static rendezvous's port is in use", "[rendezvous]") {
  boost::asio::io_context loop;
  Cluster cluster(RendezvousKind::static_, 2, 2);
  const StoreServer other_store(cluster.loop, {.port = cluster.plan.master_port});
  Node& node = cluster.add();
  cluster.until([&] { return node.over(); });
  CHECK(node.events.last<RoundOver>().exit_code == 1);
  CHECK(node.events.last<RoundOver>().text.find("Address already in use") != std::string::npos);
}

TEST_CASE("cluster_node: a node whose host runs another job ends with the reason", "[rendezvous]") {
  Cluster cluster(RendezvousKind::static_, 2, 2);
  cluster.add();
  cluster.plan.run_id = "another";
  cluster.plan.rendezvous.join_timeout = 300ms;
  cluster.add();
  cluster.until([&] { return cluster[1].over(); });
  CHECK(cluster[1].events.last<RoundOver>().exit_code == 75);
}

namespace {

// The node port in the host's store.
std::uint16_t node_port(Cluster& cluster) {
  StoreClient client(cluster.loop);
  std::optional<std::string> messages;
  client.connect(
      {"127.0.0.1", cluster.port.port()}, RunningClock::now() + 10s, [](const auto&) {}, [](const auto&) {});
  client.get(coordinator_key("job7"), [&](StoreOutcome, const auto& value) { messages = value; });
  cluster.until([&] { return messages.has_value(); });
  return static_cast<std::uint16_t>(std::stoi(*messages));
}

// Claims to the host that the job runs elsewhere, and waits for its answer.
void claim_to_host(Cluster& cluster) {
  boost::asio::ip::tcp::socket socket(cluster.loop);
  socket.connect({boost::asio::ip::address_v4::loopback(), node_port(cluster)});
  const auto connection = std::make_shared<NodeConnection>(std::move(socket), 10s);
  bool has_ended = false;
  connection->set_handlers([](const NodeMessage&) {}, [&](const ConnectionLoss&) { has_ended = true; });
  connection->start();
  connection->send(
      Hello{.run_id = "job7", .node = {.addr = "127.0.0.1", .node_port = 9}, .is_coordinator = true});
  cluster.until([&] { return has_ended; });
}

}  // namespace

TEST_CASE("cluster_node: an unconfirmed claim to host the job is ignored", "[rendezvous]") {
  Cluster cluster(GENERATE(RendezvousKind::static_, RendezvousKind::c10d), 2, 2);
  cluster.add();
  SECTION("before the nodes have met") {
    claim_to_host(cluster);
  }
  SECTION("in a round") {
    cluster.add();
    cluster.until_all_ready();
    claim_to_host(cluster);
  }
  while (cluster.nodes.size() < 2) cluster.add();
  cluster.until_all_ready();
  CHECK_FALSE(cluster[0].over());
  CHECK_FALSE(cluster[1].over());
}

TEST_CASE("cluster_node: a host that comes back finds the job that has gone on without it", "[rendezvous]") {
  Cluster cluster(RendezvousKind::c10d, 2, 3);
  cluster.plan.rendezvous.node_timeout = 500ms;
  for (int i = 0; i < 3; ++i) cluster.add();
  cluster.until_all_ready();
  cluster.forget_events();
  cluster[0].stop();
  for (const std::size_t i : {1U, 2U}) {
    cluster.until([&] { return cluster[i].over(); });
    cluster[i].events.clear();
    cluster[i].rendezvous->join();
  }
  cluster.until_all_ready();
  cluster.forget_events();
  cluster.add();
  cluster.until([&] {
    for (const std::size_t i : {1U, 2U}) {
      if (!cluster[i].over()) continue;
      CHECK(cluster[i].events.last<RoundOver>().restart);
      cluster[i].events.clear();
      cluster[i].rendezvous->join();
    }
    return cluster[3].ready() && cluster[3].round().num_machines == 3;
  });
  CHECK(cluster[3].round().machine_rank != cluster[1].round().machine_rank);
}

namespace {

// Nodes that find each other through etcd.
struct EtcdCluster : Cluster {
  EtcdCluster(int min_nodes, int max_nodes) : Cluster(RendezvousKind::etcd, min_nodes, max_nodes) {
    plan.rendezvous.endpoint_port = server.port();
    plan.rendezvous.local_addr = "127.0.0.1";
  }

  std::string coordinator() const { return server.etcd.value("/acc/rendezvous/job7/hub"); }

  // The first is the host.
  void start(int count) {
    add();
    until([this] { return !coordinator().empty(); });
    while (static_cast<int>(nodes.size()) < count) add();
    until_all_ready();
    forget_events();
  }
  void rejoin(const std::vector<std::size_t>& indices) {
    for (const std::size_t index : indices) until([&] { return nodes[index]->over(); });
    forget_events();
    for (const std::size_t index : indices) nodes[index]->rendezvous->join();
  }

  test::EtcdServer server{loop};
};

}  // namespace

TEST_CASE("cluster_node: etcd: the first node hosts, the others connect to it", "[rendezvous]") {
  EtcdCluster cluster(3, 3);
  for (int i = 0; i < 3; ++i) cluster.add();
  cluster.until_all_ready();
  CHECK(cluster[0].round().num_machines == 3);
  CHECK(cluster[2].round().master_port == cluster[0].round().master_port);
  CHECK(cluster.coordinator().starts_with("127.0.0.1:"));
}

TEST_CASE("cluster_node: etcd: a finished job leaves no key, and its name can be used at once",
          "[rendezvous]") {
  EtcdCluster cluster(2, 2);
  for (int run = 0; run < 2; ++run) {
    cluster.nodes.clear();
    cluster.add();
    cluster.add();
    cluster.until_all_ready();
    for (int i : {0, 1}) cluster.nodes.at(static_cast<std::size_t>(i))->rendezvous->finish();
    cluster.until([&] { return cluster[0].events.has<JobDone>() && cluster[1].events.has<JobDone>(); });
    for (int i : {0, 1}) cluster.nodes.at(static_cast<std::size_t>(i))->rendezvous->leave("", 0);
    cluster.until([&] { return cluster[0].events.has<Left>() && cluster[1].events.has<Left>(); });
    CHECK(cluster.coordinator().empty());
  }
}

TEST_CASE("cluster_node: etcd: the host is lost, and its successor writes the key", "[rendezvous]") {
  EtcdCluster cluster(2, 3);
  cluster.plan.rendezvous.node_timeout = 500ms;
  cluster.start(3);
  const std::string lost_coordinator = cluster.coordinator();
  cluster[0].stop();
  cluster.rejoin({1, 2});
  cluster.until_all_ready();
  cluster.until([&] { return !cluster.coordinator().empty() && cluster.coordinator() != lost_coordinator; });
  cluster.forget_events();
  cluster.add();
  cluster.rejoin({1, 2});
  cluster.until_all_ready();
  CHECK(cluster[3].round().num_machines == 3);
}

TEST_CASE("cluster_node: etcd: a job of fixed size that loses its host waits for another node",
          "[rendezvous]") {
  EtcdCluster cluster(2, 2);
  cluster.plan.max_restarts = 1;
  cluster.start(2);
  cluster[0].stop();
  cluster.rejoin({1});
  cluster.add();
  cluster.until_all_ready();
  CHECK(cluster[1].round().num_machines == 2);
  CHECK(cluster[2].events.last<RoundReady>().restarts == 1);
}

TEST_CASE("cluster_node: etcd: a new host yields to the running job", "[rendezvous]") {
  EtcdCluster cluster(2, 3);
  cluster.plan.rendezvous.node_timeout = 500ms;
  cluster.start(3);
  // The lease expires, and another node joins beside the successor.
  cluster[0].stop();
  cluster.server.etcd.expire_leases();
  cluster.add();
  // Whichever of the two is first, in the end there is one job with all three.
  cluster.until([&] {
    for (const std::size_t i : {1U, 2U}) {
      if (!cluster[i].over()) continue;
      CHECK(cluster[i].events.last<RoundOver>().restart);
      cluster[i].events.clear();
      cluster[i].rendezvous->join();
    }
    return cluster[3].ready() && cluster[3].round().num_machines == 3;
  });
}

TEST_CASE("cluster_node: etcd: a host that has lost the key yields to the new owner", "[rendezvous]") {
  EtcdCluster cluster(2, 2);
  cluster.add();
  cluster.until([&] { return !cluster.coordinator().empty(); });
  EtcdCluster rival(2, 2);
  rival.add();
  rival.until([&] { return !rival.coordinator().empty(); });
  cluster.server.etcd.set("/acc/rendezvous/job7/hub", rival.coordinator());
  rival.until([&] {
    cluster.loop.poll();
    return cluster[0].ready() && rival[0].ready();
  });
  CHECK(cluster[0].round().num_machines == 2);
  CHECK(cluster.coordinator() == rival.coordinator());
}

TEST_CASE("cluster_node: etcd: a new node does not take a running job whose lease has lapsed",
          "[rendezvous]") {
  EtcdCluster cluster(2, 2);
  cluster.start(2);
  const std::string host = cluster.coordinator();
  cluster.server.etcd.expire_leases();
  cluster.add();  // claims the key, which is free
  cluster.until([&] { return !cluster.coordinator().empty() && cluster.coordinator() != host; });
  cluster.until([&] {
    return cluster[2].events.has<Notice>() &&
           cluster[2].events.last<Notice>().text.find("waits for a place") != std::string::npos;
  });
  CHECK(cluster.coordinator() == host);
  CHECK_FALSE(cluster[0].over());
  CHECK_FALSE(cluster[1].over());
}

TEST_CASE("cluster_node: etcd: the lease of a host that died expires", "[rendezvous]") {
  EtcdCluster cluster(2, 2);
  cluster.server.etcd.set("/acc/rendezvous/job7/hub", "127.0.0.1:" + std::to_string(cluster.port.port()));
  cluster.add();
  cluster.until([&] { return cluster.server.etcd.times_asked("/v3/kv/range") == 2; });
  cluster.server.etcd.remove("/acc/rendezvous/job7/hub");
  cluster.add();
  cluster.until_all_ready();
  CHECK(cluster[0].round().num_machines == 2);
}

TEST_CASE("cluster_node: etcd: a server without the JSON gateway is one error", "[rendezvous]") {
  EtcdCluster cluster(2, 2);
  cluster.server.etcd.failure = {404, "404 page not found\n"};
  Node& node = cluster.add();
  cluster.until([&] { return node.over(); });
  const auto over = node.events.last<RoundOver>();
  CHECK(over.text.starts_with("etcd at 127.0.0.1:" + std::to_string(cluster.server.port()) +
                              ": it has no JSON gateway "));
  CHECK(over == RoundOver{.text = over.text, .exit_code = 75});
}

TEST_CASE("cluster_node: etcd: the timeout reports that there is no server", "[rendezvous]") {
  EtcdCluster cluster(2, 2);
  cluster.plan.rendezvous.endpoint_port = cluster.port.port();
  const std::string text = end_of_lonely_node(cluster).text;
  CHECK(text.find("is to name the job's host; last try: ") != std::string::npos);
  CHECK(text.find("Failed to connect to 127.0.0.1") != std::string::npos);
}

TEST_CASE("cluster_node: in a file: nodes meet without a host, and end together", "[rendezvous]") {
  const test::TemporaryFolder folder;
  Cluster cluster(RendezvousKind::c10d, 2, 2);
  cluster.plan.rendezvous.store_file = folder.path() / "job7";
  cluster.plan.max_restarts = 3;
  // Alike in address and process id, as nodes of two containers can be.
  cluster.plan.rendezvous.local_addr = "127.0.0.1";
  cluster.add();
  cluster.plan.local_id = 1000;
  cluster.add();
  cluster.until_all_ready();
  CHECK(cluster[0].round().world_size == 4);
  CHECK(cluster[0].round().master_port == cluster[1].round().master_port);
  CHECK(cluster[0].round().machine_rank != cluster[1].round().machine_rank);
  for (const auto& node : cluster.nodes) CHECK_FALSE(node->rendezvous->tell_progress({}));  // nobody leads
  cluster.forget_events();
  cluster[1].rendezvous->fail({.restart = true, .text = "a worker failed"});
  cluster[1].rendezvous->join();
  cluster.until([&] { return cluster[0].over(); });
  CHECK(cluster[0].events.last<RoundOver>().restart);
  cluster[0].rendezvous->join();
  cluster.until_all_ready();
  cluster.forget_events();
  cluster[0].rendezvous->fail({.text = "for good", .exit_code = 3});
  cluster.until([&] { return cluster[1].over(); });
  CHECK_FALSE(cluster[1].events.last<RoundOver>().restart);
}

}  // namespace cluster_node_test
