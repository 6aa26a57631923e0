// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/c10d_round.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/backend_store.hpp"
#include "support/catch.hpp"

namespace c10d_round_test {

namespace {

using acc::launcher::C10dBackendOptions;
using acc::launcher::C10dMaster;
using acc::launcher::C10dRound;
using acc::launcher::OwnNode;
using acc::launcher::RendezvousBackend;
using acc::launcher::RendezvousNode;
using acc::launcher::RendezvousState;
using acc::launcher::Store;
using acc::launcher::StoreMeeting;
using acc::test::BackendStore;
using Stage = C10dRound::Stage;

const std::string kPrefix = "/torch.rendezvous.job.3/";

// A client that can see when the master's address is asked for, and when the reply is handled.
struct WatchedClient : acc::launcher::StoreClient {
  using StoreClient::StoreClient;
  void multi_get(std::vector<std::string> keys, Handler<Values> handler) override {
    on_get();
    StoreClient::multi_get(std::move(keys),
                           [this, handler = std::move(handler)](auto outcome, const auto& values) {
                             handler(outcome, values);
                             ++replies;
                           });
  }
  std::function<void()> on_get = [] {};
  int replies = 0;
};

// Round 3 of the own node "b" and of "a", which another launcher runs and which has assigned the ranks.
struct Meeting {
  BackendStore store = {};
  WatchedClient client{store.loop};
  std::vector<RendezvousBackend::Rounds> reported = {};
  std::string error = {};
  std::optional<StoreMeeting> meeting = {};
  const C10dBackendOptions options = {.run_id = "job"};
  std::optional<C10dRound> round = {};

  explicit Meeting(const std::optional<C10dMaster>& known_master) {
    store.connect(client);
    meeting.emplace(store.loop, client,
                    RendezvousBackend::Events{
                        .on_round = [this](const RendezvousBackend::Rounds& got) { reported.push_back(got); },
                        .on_error = [this](const acc::Error& problem) { error = problem.what(); }},
                    [] {});
    store.peer.set(kPrefix + "torchelastic/assigned_ranks/1", "[2, 3, 2, 3]");
    const RendezvousNode foreign = {"a", 9, 0};
    const RendezvousNode own_node = {"b", 1, 0};
    const RendezvousState state = {
        .round = 3, .complete = true, .participants = {{foreign, 0}, {own_node, 1}}};
    round.emplace(*meeting, options, state,
                  std::map<RendezvousNode, OwnNode>{{own_node, {.addr = "b", .pid = 1}}}, known_master);
  }
};

}  // namespace

TEST_CASE("c10d_round: a master that no round has published is the one that is known", "[rendezvous]") {
  Meeting job(C10dMaster{"there", 5000, false});
  CHECK(job.round->stage() == Stage::meeting);
  job.round->start();
  job.store.until([&] { return job.reported.size() == 1; });
  CHECK(job.round->stage() == Stage::reported);
  const auto& [node, round] = job.reported[0].at(0);
  CHECK(node.addr == "b");
  CHECK(round.machine_rank == 1);
  CHECK(round.first_rank == 2);
  CHECK(round.master_addr == "there");
  CHECK(round.master_port == 5000);
  CHECK_FALSE(round.use_agent_store);
  CHECK(job.round->master() == C10dMaster{"there", 5000, false});
}

TEST_CASE("c10d_round: without any master the meeting fails", "[rendezvous]") {
  Meeting job(std::nullopt);
  job.round->start();
  job.store.until([&] { return !job.error.empty(); });
  CHECK(job.error.find("the node with rank 0 has not published the address") != std::string::npos);
  CHECK(job.client.replies == 4);  // of rounds 3 to 0
  CHECK(job.reported.empty());
}

TEST_CASE("c10d_round: once it is over nothing is reported", "[rendezvous]") {
  Meeting job(C10dMaster{"there", 5000});
  job.client.on_get = [&] { job.round->end(); };
  job.round->start();
  job.store.until([&] { return job.client.replies == 1; });
  CHECK(job.round->stage() == Stage::over);
  CHECK(job.reported.empty());
}

TEST_CASE("c10d_round: after an error of the meeting nothing is reported", "[rendezvous]") {
  Meeting job(C10dMaster{"there", 5000});
  job.client.on_get = [&] { job.meeting->fail(acc::Error({.what = "it is over"})); };
  job.round->start();
  job.store.until([&] { return job.client.replies == 1; });
  CHECK(job.error == "it is over");
  CHECK(job.reported.empty());
}

TEST_CASE("c10d_round: at the end its own nodes wait for the others", "[rendezvous]") {
  const Meeting job(std::nullopt);
  CHECK_FALSE(job.round->is_alone());
  const auto barrier = job.round->exit_barrier();
  CHECK(barrier.prefix == kPrefix);
  CHECK(barrier.group_size == 2);
  CHECK(barrier.nodes == 1);
}

}  // namespace c10d_round_test
