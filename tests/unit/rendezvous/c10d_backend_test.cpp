// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/c10d_backend.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "acc/rendezvous/base64.hpp"
#include "acc/store/file_store.hpp"
#include "support/backend_store.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace c10d_backend_test {

namespace {

using acc::launcher::C10dBackend;
using acc::launcher::C10dBackendOptions;
using acc::launcher::OwnNode;
using acc::launcher::RendezvousBackend;
using acc::launcher::RendezvousNode;
using acc::launcher::RendezvousState;
using acc::launcher::Round;
using acc::launcher::TorchAgents;
using acc::test::BackendStore;
using std::chrono::milliseconds;

constexpr const char* kKey = "/torch.rendezvous.job";

// One agent: its backend and the events it received.
struct Agent {
  std::vector<std::string> events = {};
  RendezvousBackend::Rounds rounds = {};
  int rounds_heard = 0;
  std::string error = {};
  acc::launcher::StoreClient client;
  std::unique_ptr<C10dBackend> backend = {};

  Agent(BackendStore& store, const C10dBackendOptions& options, const std::vector<OwnNode>& nodes)
      : client(store.loop) {
    store.connect(client);
    backend = std::make_unique<C10dBackend>(
        store.loop, client, options,
        RendezvousBackend::Events{
            .on_round =
                [this](const RendezvousBackend::Rounds& new_rounds) {
                  rounds = new_rounds;
                  ++rounds_heard;
                },
            .on_change = [this] { events.emplace_back("change"); },
            .on_closed = [this] { events.emplace_back("closed"); },
            .on_error = [this](const acc::Error& problem) { error = problem.what(); },
            .on_missing = [this](const std::string& text, bool) { events.push_back(text); }});
    for (const OwnNode& node : nodes) backend->add(node);
  }
  bool has_event(const std::string& text) const { return std::ranges::find(events, text) != events.end(); }
};

OwnNode node(const std::string& addr, int workers = 1) {
  return {.addr = addr, .pid = 1, .local_world_size = workers, .store_port = 4000};
}

C10dBackendOptions options(const BackendStore& store, std::size_t min_nodes, std::size_t max_nodes) {
  return {.run_id = "job",
          .machine = {.min_nodes = min_nodes, .max_nodes = max_nodes, .last_call = milliseconds(50)},
          .endpoint = store.address,
          .poll_interval = milliseconds(2)};
}

// Plays the other agents: writes a state as torchrun does.
void write(BackendStore& store, const RendezvousState& state) {
  store.peer.set(kKey, acc::launcher::to_base64(to_pickle(state)));
}

// A complete round of `foreign` and one own node "b".
RendezvousState complete_with(const RendezvousNode& foreign, bool zone) {
  RendezvousState state;
  state.complete = true;
  state.times_have_zone = zone;
  state.participants[foreign] = 0;
  state.participants[{"b", 1, 0}] = 0;
  std::int64_t next_rank = 0;
  for (auto& [node, rank] : state.participants) {
    rank = next_rank++;
    state.last_heartbeats[node] = acc::launcher::WallTime(std::chrono::seconds(1'700'000'000));
  }
  return state;
}

}  // namespace

TEST_CASE("c10d_backend: time in which this process stood still is not of the join timeout", "[rendezvous]") {
  BackendStore store;
  C10dBackendOptions settings = options(store, 2, 2);
  settings.machine.join_timeout = std::chrono::seconds(3);  // so much a loaded machine may be late
  Agent agent(store, settings, {node("a")});
  store.until([&] { return agent.has_event("1 of at least 2 nodes here"); });
  acc::test::stand_still(store.loop, milliseconds(3200));
  agent.backend->add(node("b"));
  store.until([&] { return agent.rounds_heard == 1 || !agent.error.empty(); });
  CHECK(agent.error == "");
}

// As after a pause of the virtual machines of all nodes: nobody could write a heartbeat.
TEST_CASE("c10d_backend: others are not dead since this process stood still", "[rendezvous]") {
  BackendStore store;
  C10dBackendOptions settings = options(store, 2, 2);
  settings.machine.keep_alive_interval = milliseconds(700);
  Agent agent(store, settings, {node("b")});
  write(store, complete_with({"a", 1, 0}, true));
  const auto state = [&] {
    return acc::launcher::read_rendezvous_state(*acc::launcher::from_base64(store.get(kKey)));
  };
  const auto own_heartbeat = [&] { return state().last_heartbeats[{"b", 1, 0}]; };
  const auto next_heartbeat = [&](auto last) {
    store.until([&] { return own_heartbeat() != last; });
    return own_heartbeat();
  };
  const auto last = next_heartbeat(own_heartbeat());
  acc::test::stand_still(store.loop, milliseconds(2400));
  next_heartbeat(last);
  CHECK(state().participants.contains({"a", 1, 0}));
}

TEST_CASE("c10d_backend: own nodes alone form a round, and their rank 0 writes its address", "[rendezvous]") {
  BackendStore store;
  Agent agent(store, options(store, 2, 2), {node("b", 3), node("a", 2)});
  store.until([&] { return agent.rounds_heard == 1; });
  REQUIRE(agent.rounds.size() == 2);
  CHECK(agent.rounds[0].first.addr == "a");
  CHECK(agent.rounds[0].second == Round{.machine_rank = 0,
                                        .num_machines = 2,
                                        .first_rank = 0,
                                        .world_size = 5,
                                        .first_role_rank = 0,
                                        .role_world_size = 5,
                                        .master_addr = "a",
                                        .master_port = 4000});
  CHECK(agent.rounds[1].second.first_rank == 2);
  CHECK(store.get("/torch.rendezvous.job.0/MASTER_ADDR") == "a");
  CHECK(store.get("/torch.rendezvous.job.0/MASTER_PORT") == "4000");
}

TEST_CASE("c10d_backend: two backends meet, restart and end together", "[rendezvous]") {
  BackendStore store;
  Agent one(store, options(store, 2, 2), {node("a", 1)});
  store.until([&] { return one.has_event("1 of at least 2 nodes here"); });
  Agent two(store, options(store, 2, 2), {node("b", 2)});
  store.until([&] { return one.rounds_heard == 1 && two.rounds_heard == 1; });
  CHECK(two.rounds[0].second == Round{.machine_rank = 1,
                                      .num_machines = 2,
                                      .first_rank = 1,
                                      .world_size = 3,
                                      .first_role_rank = 1,
                                      .role_world_size = 3,
                                      .master_addr = "a",
                                      .master_port = 4000});

  two.backend->next_round();
  store.until([&] { return one.has_event("change"); });
  one.backend->next_round();
  store.until([&] { return one.rounds_heard == 2 && two.rounds_heard == 2; });
  CHECK(store.get("/torch.rendezvous.job.1/MASTER_ADDR") == "a");

  int finished = 0;
  one.backend->finish([&] { ++finished; });
  CHECK(store.await("/torch.rendezvous.job.1/torchelastic/agent/terminal_state/num_members") == "1");
  two.backend->finish([&] { ++finished; });
  store.until([&] { return finished >= 2; });
  CHECK(finished == 2);

  one.backend->close();
  store.until([&] { return one.has_event("closed") && two.has_event("closed"); });
  CHECK(std::ranges::count(two.events, "closed") == 1);
}

TEST_CASE("c10d_backend: of earlier rounds the store keeps the last ranks, and addresses for longer",
          "[rendezvous]") {
  BackendStore store;
  Agent one(store, options(store, 2, 2), {node("a")});
  Agent two(store, options(store, 2, 2), {node("b")});
  constexpr int kRounds = 66;
  for (int round = 1; round <= kRounds; ++round) {
    store.until([&] { return one.rounds_heard == round && two.rounds_heard == round; });
    if (round == kRounds) break;
    one.backend->next_round();
    store.until([&] { return std::ranges::count(two.events, "change") == round; });
    two.backend->next_round();
  }
  const auto first_kept = [&](const std::string& name) {
    int round = 0;
    while (store.get("/torch.rendezvous.job." + std::to_string(round) + "/" + name) == "(none)") ++round;
    return round;
  };
  for (const char* name : {"role_info/0", "role_info/1", "assigned_ranks/0", "assigned_ranks/1"})
    CHECK(first_kept(std::string("torchelastic/") + name) == kRounds - 2);
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) CHECK(first_kept(name) == kRounds - 64);
}

TEST_CASE("c10d_backend: an own node that is added or removed changes the round", "[rendezvous]") {
  BackendStore store;
  Agent agent(store, options(store, 1, 4), {node("a")});
  store.until([&] { return agent.rounds_heard == 1; });
  agent.backend->add(node("b"));
  store.until([&] { return agent.has_event("change"); });
  agent.backend->next_round();
  store.until([&] { return agent.rounds_heard == 2; });
  CHECK(agent.rounds.size() == 2);
  agent.events.clear();
  agent.backend->remove(node("a"));
  store.until([&] { return agent.has_event("change"); });
  agent.backend->next_round();
  store.until([&] { return agent.rounds_heard == 3; });
  REQUIRE(agent.rounds.size() == 1);
  CHECK(agent.rounds[0].first.addr == "b");
}

TEST_CASE("c10d_backend: a surplus node waits as a spare, and replaces one that leaves", "[rendezvous]") {
  BackendStore store;
  Agent one(store, options(store, 1, 1), {node("a")});
  store.until([&] { return one.rounds_heard == 1; });
  Agent two(store, options(store, 1, 1), {node("b")});
  store.until([&] { return two.has_event("the job has its 1 node; waiting as a spare"); });
  one.backend->remove(node("a"));
  store.until([&] { return two.rounds_heard == 1; });
  CHECK(two.rounds[0].second.machine_rank == 0);
}

TEST_CASE("c10d_backend: if torchrun is rank 0, the address is where its version writes it", "[rendezvous]") {
  const auto [keys, zone, addr, agent_store] = GENERATE(table<std::string, bool, std::string, bool>({
      {"in this round", true, "there", true},      // 2.6 and later, first round
      {"in a round before", true, "there", true},  // 2.6 and later, if we joined later
      {"in this round", false, "there", false},    // 2.4
      {"nowhere", false, "127.0.0.1", true},       // 2.5: the rendezvous store itself
  }));
  BackendStore store;
  RendezvousState state = complete_with({"a", 9, 0}, zone);
  state.round = 3;
  const std::string round = "/torch.rendezvous.job.3/";
  const std::string prefix = keys == "in this round" ? round : "/torch.rendezvous.job.1/";
  if (keys != "nowhere") {
    store.peer.set(prefix + "MASTER_ADDR", "there");
    store.peer.set(prefix + "MASTER_PORT", "5000");
  }
  store.peer.set(round + "torchelastic/assigned_ranks/1", "[2, 3, 2, 3]");
  write(store, state);
  store.get(kKey);
  Agent agent(store, options(store, 2, 2), {node("b")});
  store.until([&] { return agent.rounds_heard == 1; });
  const Round& result = agent.rounds[0].second;
  CHECK(result.master_addr == addr);
  CHECK(result.master_port == (keys == "nowhere" ? store.address.port : 5000));
  CHECK(result.use_agent_store == agent_store);
  CHECK(store.get(round + "torchelastic/role_info/1") ==
        R"({"role": "default", "rank": 1, "local_world_size": 1})");
}

TEST_CASE("c10d_backend: as rank 0 beside an older torchrun it follows that version's rules",
          "[rendezvous]") {
  BackendStore store;
  write(store, complete_with({"c", 9, 0}, false));
  store.peer.set("/torch.rendezvous.job.0/torchelastic/role_info/1",
                 R"({"role": "default", "rank": 1, "local_world_size": 1})");
  store.get(kKey);
  C10dBackendOptions settings = options(store, 2, 2);
  SECTION("2.4: worker 0 serves") {
    settings.agents = TorchAgents::v2_4;
    Agent agent(store, settings, {node("b")});
    store.until([&] { return agent.rounds_heard == 1; });
    CHECK(agent.rounds[0].second.master_addr == "b");
    CHECK_FALSE(agent.rounds[0].second.use_agent_store);
  }
  SECTION("2.5: the rendezvous store serves") {
    settings.agents = TorchAgents::v2_5;
    Agent agent(store, settings, {node("b")});
    store.until([&] { return agent.rounds_heard == 1; });
    CHECK(agent.rounds[0].second.master_port == store.address.port);
    CHECK(agent.rounds[0].second.use_agent_store);
  }
  SECTION("unknown: rather an error than a job that hangs") {
    Agent agent(store, settings, {node("b")});
    store.until([&] { return !agent.error.empty(); });
    CHECK(agent.error.find("torch 2.4 or 2.5") != std::string::npos);
  }
}

TEST_CASE("c10d_backend: reports one error when it cannot go on", "[rendezvous]") {
  BackendStore store;
  const std::string address = to_string(store.address);
  C10dBackendOptions settings = options(store, 2, 2);
  SECTION("a state that is none") {
    store.peer.set(kKey, acc::launcher::to_base64("cos\nsystem\n."));
    store.get(kKey);
    Agent agent(store, settings, {node("a")});
    store.until([&] { return !agent.error.empty(); });
    CHECK(agent.error.starts_with(
        "the rendezvous state of this job cannot be read: the pickle has an unknown"));
  }
  SECTION("too few nodes") {
    settings.machine.join_timeout = milliseconds(50);
    Agent agent(store, settings, {node("a")});
    store.until([&] { return !agent.error.empty(); });
    CHECK(agent.error ==
          address +
              ": 1 node waited 0 s for a round of at least 2 nodes (start the other nodes with the "
              "same endpoint and id, or raise join_timeout)");
    CHECK(acc::launcher::read_rendezvous_state(*acc::launcher::from_base64(store.get(kKey)))
              .participants.empty());
  }
  SECTION("a lost store") {
    Agent agent(store, settings, {node("a")});
    store.until([&] { return agent.has_event("1 of at least 2 nodes here"); });
    store.server.reset();
    store.until([&] { return !agent.error.empty(); });
    CHECK(agent.error.starts_with(address + ": the connection to the store of the rendezvous is lost"));
    agent.backend->close();
    store.until([&] { return agent.has_event("closed"); });
  }
}

TEST_CASE("c10d_backend: joining a job that is over is an error that names it", "[rendezvous]") {
  BackendStore store;
  write(store, {.closed = true});
  Agent agent(store, options(store, 1, 1), {node("a")});
  store.until([&] { return !agent.error.empty(); });
  CHECK(agent.error ==
        to_string(store.address) + ": the job 'job' is over already (another --rdzv-id begins another job)");
  CHECK_FALSE(agent.has_event("closed"));
}

TEST_CASE("c10d_backend: nodes meet in a file as they do in a store", "[rendezvous]") {
  BackendStore store;
  const acc::test::TemporaryFolder folder;
  acc::launcher::FileStore first(store.loop, folder.path() / "job");
  acc::launcher::FileStore second(store.loop, folder.path() / "job");
  C10dBackendOptions settings = options(store, 2, 2);
  settings.endpoint.reset();
  std::vector<RendezvousBackend::Rounds> rounds;
  int closed = 0;
  int finished = 0;
  const RendezvousBackend::Events events = {
      .on_round = [&](const RendezvousBackend::Rounds& got) { rounds.push_back(got); },
      .on_closed = [&] { ++closed; }};
  C10dBackend one(store.loop, first, settings, events);
  C10dBackend two(store.loop, second, settings, events);
  one.add(node("a", 2));
  two.add(node("b"));
  store.until([&] { return rounds.size() == 2; });
  for (const RendezvousBackend::Rounds& round : rounds) {
    CHECK(round.at(0).second.world_size == 3);
    CHECK(round.at(0).second.master_addr == "a");
  }
  one.finish([&] { ++finished; });
  two.finish([&] { ++finished; });
  store.until([&] { return finished == 2; });
  two.close();
  store.until([&] { return closed == 2; });
}

TEST_CASE("c10d_backend: a lost store at the end is not an error", "[rendezvous]") {
  BackendStore store;
  Agent one(store, options(store, 2, 2), {node("a")});
  Agent two(store, options(store, 2, 2), {node("b")});
  store.until([&] { return one.rounds_heard == 1 && two.rounds_heard == 1; });
  bool has_finished = false;
  one.backend->finish([&] { has_finished = true; });
  store.await("/torch.rendezvous.job.0/torchelastic/agent/terminal_state/num_members");
  CHECK_FALSE(has_finished);
  store.server.reset();
  store.until([&] { return has_finished; });
  CHECK(one.error.empty());
}

TEST_CASE("c10d_backend: may be destroyed in any of its events", "[rendezvous]") {
  BackendStore store;
  acc::launcher::StoreClient client(store.loop);
  store.connect(client);
  std::unique_ptr<C10dBackend> backend;
  bool is_destroyed = false;
  const auto end = [&](const auto&...) {
    backend.reset();
    is_destroyed = true;  // the event's captures are still valid
  };
  const auto make = [&](std::size_t nodes, RendezvousBackend::Events events) {
    backend = std::make_unique<C10dBackend>(store.loop, client, options(store, nodes, 2), std::move(events));
    backend->add(node("a"));
  };
  std::optional<Agent> peer;
  SECTION("a round") {
    make(1, {.on_round = end});
  }
  SECTION("a change") {
    bool in_round = false;
    make(1, {.on_round = [&](const auto&) { in_round = true; }, .on_change = end});
    store.until([&] { return in_round; });
    peer.emplace(store, options(store, 1, 2), std::vector{node("b")});
  }
  SECTION("the end of the job") {
    make(2, {.on_closed = end});
    backend->close();
  }
  SECTION("an error") {
    make(2, {.on_error = end});
    store.await(kKey);
    store.server.reset();
  }
  SECTION("who is missing") {
    make(2, {.on_missing = [end](const std::string&, bool) { end(""); }});
  }
  store.until([&] { return is_destroyed; });
  store.loop.poll();  // runs remaining handlers
}

TEST_CASE("c10d_backend: a round that is over before it was reported is followed by another",
          "[rendezvous]") {
  BackendStore store;
  RendezvousState state = complete_with({"a", 9, 0}, true);  // whose node 0 assigns no ranks
  write(store, state);
  store.get(kKey);
  Agent agent(store, options(store, 1, 2), {node("b")});
  store.await("/torch.rendezvous.job.0/torchelastic/role_info/1");
  state.participants.erase({"a", 9, 0});  // it has left
  write(store, state);
  store.until([&] { return agent.rounds_heard == 1; });
  CHECK_FALSE(agent.has_event("change"));
  CHECK(agent.rounds[0].second.num_machines == 1);
}

namespace {

struct CountingClient : acc::launcher::StoreClient {
  using StoreClient::StoreClient;
  void compare_set(std::string key, std::string expected, std::string desired,
                   Handler<std::string> handler) override {
    written += desired.size();
    last = desired.size();
    StoreClient::compare_set(std::move(key), std::move(expected), std::move(desired), std::move(handler));
  }
  std::size_t written = 0;
  std::size_t last = 0;
};

}  // namespace

// Each write holds all nodes. Written one by one, a hundred would cost fifty times their bytes.
TEST_CASE("c10d_backend: nodes that come one after the other are written together", "[rendezvous]") {
  constexpr std::size_t kNodes = 100;
  BackendStore store;
  CountingClient client(store.loop);
  store.connect(client);
  int rounds = 0;
  C10dBackend backend(
      store.loop, client, options(store, kNodes, kNodes),
      {.on_round = [&](const RendezvousBackend::Rounds& got) { rounds += got.size() == kNodes ? 1 : 0; }});
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < kNodes; ++i) {
    backend.add(node("10.0.0." + std::to_string(100 + i)));
    store.loop.run_for(std::chrono::microseconds(500));
  }
  store.until([&] { return rounds == 1; });
  const auto passed = std::chrono::steady_clock::now() - start;
  // 100 us for each node in each write, and a few writes of all.
  const auto bound = static_cast<std::size_t>(passed / std::chrono::microseconds(100)) + 4 * kNodes;
  CHECK(client.written < bound * client.last / kNodes);
}

}  // namespace c10d_backend_test
