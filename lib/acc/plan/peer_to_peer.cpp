// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/peer_to_peer.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

bool is_older(std::string_view version, std::string_view than) {
  const auto numbers = [](std::string_view text) {
    std::vector<std::int64_t> result;
    for (const std::string& part : split(text, '.')) result.push_back(parse_integer(part).value_or(0));
    return result;
  };
  return numbers(version) < numbers(than);
}

}  // namespace

Environment peer_to_peer_environment(const LaunchInputs& inputs) {
  const Machine& machine = inputs.machine;
  const bool affected = std::ranges::any_of(
      machine.gpus, [](const Gpu& gpu) { return gpu.name.find("RTX 40") != std::string::npos; });
  if (machine.gpus.size() < 2 || !affected || machine.driver_version.empty() ||
      !is_older(machine.driver_version, "550.40.07"))
    return {};
  Environment environment;
  for (const char* name : {"NCCL_P2P_DISABLE", "NCCL_IB_DISABLE"}) {
    if (!inputs.environment.contains(name)) environment.set(name, "1");
  }
  return environment;
}

}  // namespace acc::launcher
