// SPDX-License-Identifier: Apache-2.0
// Whether the agent's simulation would notice faults: copies of the agent's sources have each of
// mutate_agent.py's.
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <string>

#include "simulation/mutants/mutants.hpp"
#include "support/catch.hpp"
#include "support/simulated_job.hpp"

namespace {

using namespace acc::test;
using simulation::kMutants;

constexpr std::uint64_t kSeeds = 20000;

// The promise that is not kept; empty: all are. What the agent itself throws is neither expected.
std::string violation_with(int fault, std::uint64_t seed) {
  simulation::mutant = fault;
  try {
    execute(schedule_of(seed));
  } catch (const std::exception& violation) {
    const std::string text = violation.what();
    return text.substr(0, text.find('\n'));
  }
  return {};
}

std::optional<std::uint64_t> first_failure(int fault) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (!violation_with(fault, seed).empty()) return seed;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("mutants: each fault of the agent is found within 20,000 seeds, which keep all promises without it",
          "[mutants]") {
  for (int fault = 1; fault <= static_cast<int>(kMutants.size()); ++fault) {
    const auto seed = first_failure(fault);
    const std::string& name = kMutants.at(static_cast<std::size_t>(fault) - 1);
    std::cout << name << ": seed " << seed.value_or(0) << ": "
              << (seed ? violation_with(fault, *seed) : "NOT FOUND") << std::endl;
    CAPTURE(name);
    CHECK(seed);
    if (seed) CHECK(violation_with(0, *seed).empty());
  }
}
