// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/make_board.hpp"

#include <memory>

#include "support/board_store.hpp"
#include "support/catch.hpp"

using namespace acc;
using namespace acc::launcher;
using test::BoardStore;

TEST_CASE("make board: nodes meet under the rules and with the names of the plan", "[rendezvous]") {
  const auto backend = GENERATE(RendezvousBackend::static_, RendezvousBackend::c10d);
  BoardStore store;
  LaunchPlan plan;
  plan.run_id = "job7";
  plan.master_addr = "here";
  plan.master_port = 4711;
  plan.rendezvous.backend = backend;
  Board::Rounds rounds;
  const auto board =
      make_board(store.loop, plan, store.hand, {.on_round = [&](const Board::Rounds& got) { rounds = got; }});
  board->add({.addr = "a", .local_world_size = 2, .store_port = 4000});
  store.until([&] { return !rounds.empty(); });
  const bool is_static = backend == RendezvousBackend::static_;
  CHECK(rounds[0].second.world_size == 2);
  CHECK(rounds[0].second.master_addr == (is_static ? "here" : "a"));
  CHECK(rounds[0].second.master_port == (is_static ? 4711 : 4000));
  CHECK(store.await(is_static ? "/job7/torchelastic/assigned_ranks/0"
                              : "/torch.rendezvous.job7.0/torchelastic/assigned_ranks/0") == "[0, 2, 0, 2]");
}
