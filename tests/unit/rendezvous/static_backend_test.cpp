// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/static_backend.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acc/rendezvous/store_meeting.hpp"
#include "support/backend_store.hpp"
#include "support/catch.hpp"

namespace static_backend_test {

namespace {

using acc::launcher::OwnNode;
using acc::launcher::RendezvousBackend;
using acc::launcher::Round;
using acc::launcher::StaticBackend;
using acc::launcher::StaticBackendOptions;
using acc::test::BackendStore;

struct Agent {
  RendezvousBackend::Rounds rounds = {};
  int rounds_heard = 0;
  std::string error = {};
  std::vector<std::string> missing = {};
  acc::launcher::StoreClient client;
  std::unique_ptr<StaticBackend> backend = {};

  Agent(BackendStore& store, int nodes, std::chrono::milliseconds join_timeout = std::chrono::seconds(30),
        std::chrono::milliseconds look = std::chrono::milliseconds(2))
      : client(store.loop) {
    store.connect(client);
    backend = std::make_unique<StaticBackend>(
        store.loop, client,
        StaticBackendOptions{.master = store.address,
                             .run_id = "job",
                             .num_nodes = nodes,
                             .join_timeout = join_timeout,
                             .poll_interval = look},
        RendezvousBackend::Events{
            .on_round =
                [this](const RendezvousBackend::Rounds& new_rounds) {
                  rounds = new_rounds;
                  ++rounds_heard;
                },
            .on_error = [this](const acc::Error& problem) { error = problem.what(); },
            .on_missing = [this](const std::string& text, bool) { missing.push_back(text); }});
  }
};

OwnNode node(int rank, int workers) {
  return {.addr = "127.0.0.1", .pid = 1, .node_rank = rank, .local_world_size = workers};
}

}  // namespace

TEST_CASE("static_backend: nodes of two backends get their ranks, again after a restart", "[rendezvous]") {
  BackendStore store;
  Agent one(store, 3);
  Agent two(store, 3);
  one.backend->add(node(0, 2));
  two.backend->add(node(2, 1));
  CHECK(store.await("/job/torchelastic/role_info/2") ==
        R"({"role": "default", "rank": 2, "local_world_size": 1})");
  CHECK(one.rounds_heard == 0);
  one.backend->add(node(1, 4));  // a node that connects later
  store.until([&] { return one.rounds_heard == 1 && two.rounds_heard == 1; });
  REQUIRE(one.rounds.size() == 2);
  CHECK(one.rounds[1].second == Round{.machine_rank = 1,
                                      .num_machines = 3,
                                      .first_rank = 2,
                                      .world_size = 7,
                                      .first_role_rank = 2,
                                      .role_world_size = 7,
                                      .master_addr = "127.0.0.1",
                                      .master_port = store.address.port});
  CHECK(two.rounds[0].second.first_rank == 6);
  CHECK(store.get("init/") == "3");

  two.backend->next_round();
  store.until([&] { return two.rounds_heard == 2; });
  CHECK(two.rounds[0].second.first_rank == 6);
  CHECK(store.get("init/") == "3");

  int finished = 0;
  one.backend->finish([&] { ++finished; });
  two.backend->finish([&] { ++finished; });
  store.until([&] { return finished >= 2; });
  CHECK(finished == 2);
}

TEST_CASE("static_backend: reports missing nodes", "[rendezvous]") {
  BackendStore store;
  Agent agent(store, 3);
  agent.backend->add(node(0, 1));
  store.until([&] { return !agent.missing.empty(); });
  CHECK(agent.missing == std::vector<std::string>{"waiting for node 1, 2"});
  agent.backend->add(node(2, 1));
  store.until([&] { return agent.missing.size() == 2; });
  CHECK(agent.missing.back() == "waiting for node 1");
}

TEST_CASE("static_backend: reports missing nodes even before it is connected", "[rendezvous]") {
  BackendStore store;
  Agent agent(store, 2, std::chrono::seconds(30), std::chrono::milliseconds(0));
  agent.backend->add(node(0, 1));
  store.until([&] { return !agent.missing.empty(); });
  CHECK(agent.missing == std::vector<std::string>{"waiting for node 1"});
}

TEST_CASE("static_backend: time in which this process stood still is not of the join timeout",
          "[rendezvous]") {
  BackendStore store;
  Agent agent(store, 2, std::chrono::seconds(3));  // so much a loaded machine may be late
  agent.backend->add(node(0, 1));
  store.until([&] { return !agent.missing.empty(); });
  acc::test::stand_still(store.loop, std::chrono::milliseconds(3200));
  agent.backend->add(node(1, 1));
  store.until([&] { return agent.rounds_heard == 1 || !agent.error.empty(); });
  CHECK(agent.error.empty());
}

TEST_CASE("static_backend: gives up after the join timeout", "[rendezvous]") {
  BackendStore store;
  Agent agent(store, 3, std::chrono::milliseconds(50));
  agent.backend->add(node(0, 1));
  store.until([&] { return !agent.error.empty(); });
  CHECK(agent.error.starts_with(to_string(store.address) +
                                ": not every node has reported its worker count within 1 s"));
}

TEST_CASE("static_backend: a lost store is an error, except at the end", "[rendezvous]") {
  BackendStore store;
  Agent agent(store, 2);
  agent.backend->add(node(0, 1));
  store.await("/job/torchelastic/role_info/0");
  SECTION("before") {
    store.server.reset();
    store.until([&] { return !agent.error.empty(); });
    CHECK(agent.error.starts_with(to_string(store.address) + ": the connection to the store"));
  }
  SECTION("at the end") {
    store.peer.set("/job/torchelastic/role_info/1",
                   R"({"role": "default", "rank": 1, "local_world_size": 1})");
    store.until([&] { return agent.rounds_heard == 1; });
    bool has_finished = false;
    agent.backend->finish([&] { has_finished = true; });
    store.await("/job/torchelastic/agent/terminal_state/num_members");
    store.server.reset();
    store.until([&] { return has_finished; });
    CHECK(agent.error.empty());
  }
}

TEST_CASE("static_backend: the end waits for no other launcher if there is none", "[rendezvous]") {
  BackendStore store;
  Agent agent(store, 2);
  agent.backend->add(node(0, 1));
  agent.backend->add(node(1, 1));
  store.until([&] { return agent.rounds_heard == 1; });
  bool has_finished = false;
  agent.backend->finish([&] { has_finished = true; });
  // The test's client and the backend's own.
  store.until([&] { return has_finished && store.server->connections() == 2; });
  CHECK(store.get("/job/torchelastic/agent/terminal_state/num_members") == "(none)");
}

TEST_CASE("static_backend: the end does not wait for a node that has succeeded and was lost then",
          "[rendezvous]") {
  BackendStore store;
  Agent agent(store, 2);
  agent.backend->add(node(0, 1));
  agent.backend->add(node(1, 1));
  store.until([&] { return agent.rounds_heard == 1; });
  agent.backend->remove(node(1, 1));
  bool has_finished = false;
  agent.backend->finish([&] { has_finished = true; });
  store.until([&] { return has_finished; });
  CHECK(has_finished);
}

TEST_CASE("static_backend: a node that has connected anew stays when its earlier connection goes",
          "[rendezvous]") {
  BackendStore store;
  Agent agent(store, 2);
  OwnNode earlier = node(1, 1);
  earlier.local_id = 1;
  OwnNode later = node(1, 3);
  later.local_id = 2;
  agent.backend->add(earlier);
  agent.backend->add(later);
  agent.backend->remove(earlier);
  agent.backend->add(node(0, 1));
  store.until([&] { return agent.rounds_heard == 1; });
  CHECK(agent.rounds[1].first == later);
  CHECK(agent.rounds[1].second.world_size == 4);
}

TEST_CASE("static_backend: may be destroyed in any of its events", "[rendezvous]") {
  BackendStore store;
  acc::launcher::StoreClient client(store.loop);
  store.connect(client);
  std::unique_ptr<StaticBackend> backend;
  bool is_destroyed = false;
  const auto end = [&](const auto&...) {
    backend.reset();
    is_destroyed = true;  // the event's captures are still valid
  };
  const auto make = [&](int nodes, RendezvousBackend::Events events) {
    backend =
        std::make_unique<StaticBackend>(store.loop, client,
                                        StaticBackendOptions{.master = store.address,
                                                             .run_id = "job",
                                                             .num_nodes = nodes,
                                                             .poll_interval = std::chrono::milliseconds(2)},
                                        std::move(events));
    backend->add(node(0, 1));
  };
  SECTION("a round") {
    make(1, {.on_round = end});
  }
  SECTION("the end of the job") {
    make(2, {.on_closed = end});
    backend->close();
  }
  SECTION("an error") {
    make(2, {.on_error = end});
    store.await("/job/torchelastic/role_info/0");
    store.server.reset();
  }
  SECTION("who is missing") {
    make(2, {.on_missing = end});
  }
  store.until([&] { return is_destroyed; });
  store.loop.poll();  // runs remaining handlers
}

}  // namespace static_backend_test
