// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/peer_to_peer.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace {

acc::launcher::LaunchInputs machine_with(int gpus, const std::string& name, const std::string& driver) {
  acc::launcher::LaunchInputs given = acc::test::inputs({"train.py"}, acc::launcher::Dialect::launch, gpus);
  for (acc::Gpu& gpu : given.machine.gpus) gpu.name = name;
  given.machine.driver_version = driver;
  return given;
}

}  // namespace

TEST_CASE("peer_to_peer: several RTX 40 cards under an old driver do without it", "[plan]") {
  const std::string card = "NVIDIA GeForce RTX 4090";
  const acc::Environment off = {{"NCCL_IB_DISABLE", "1"}, {"NCCL_P2P_DISABLE", "1"}};
  CHECK(peer_to_peer_environment(machine_with(2, card, "550.40.06")) == off);
  CHECK(peer_to_peer_environment(machine_with(2, card, "535.183.01")) == off);
  CHECK(peer_to_peer_environment(machine_with(2, card, "550.40.07")).empty());
  CHECK(peer_to_peer_environment(machine_with(1, card, "535.1")).empty());
  CHECK(peer_to_peer_environment(machine_with(2, "NVIDIA H100", "535.1")).empty());
}

TEST_CASE("peer_to_peer: what the person set stays", "[plan]") {
  acc::launcher::LaunchInputs given = machine_with(2, "NVIDIA GeForce RTX 4090", "535.1");
  given.environment.set("NCCL_P2P_DISABLE", "0");
  CHECK(peer_to_peer_environment(given) == acc::Environment{{"NCCL_IB_DISABLE", "1"}});
}
