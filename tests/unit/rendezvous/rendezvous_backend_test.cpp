// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/rendezvous_backend.hpp"

#include <memory>

#include "support/backend_store.hpp"
#include "support/catch.hpp"

namespace rendezvous_backend_test {

using namespace acc;
using namespace acc::launcher;
using test::BackendStore;

TEST_CASE("rendezvous_backend: uses the settings and names of the plan", "[rendezvous]") {
  const auto kind = GENERATE(RendezvousKind::static_, RendezvousKind::c10d);
  BackendStore store;
  LaunchPlan plan;
  plan.run_id = "job7";
  plan.master_addr = "here";
  plan.master_port = 4711;
  plan.rendezvous.backend = kind;
  RendezvousBackend::Rounds rounds;
  const auto backend =
      make_backend(store.loop, plan, store.peer,
                   {.on_round = [&](const RendezvousBackend::Rounds& got) { rounds = got; }});
  backend->add({.addr = "a", .local_world_size = 2, .store_port = 4000});
  store.until([&] { return !rounds.empty(); });
  const bool is_static = kind == RendezvousKind::static_;
  CHECK(rounds[0].second.world_size == 2);
  CHECK(rounds[0].second.master_addr == (is_static ? "here" : "a"));
  CHECK(rounds[0].second.master_port == (is_static ? 4711 : 4000));
  CHECK(store.await(is_static ? "/job7/torchelastic/assigned_ranks/0"
                              : "/torch.rendezvous.job7.0/torchelastic/assigned_ranks/0") == "[0, 2, 0, 2]");
}

}  // namespace rendezvous_backend_test
