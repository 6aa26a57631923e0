// SPDX-License-Identifier: Apache-2.0
// Whether the simulation would notice faults: copies of the sources of the rendezvous have each of
// mutate_rendezvous.py's.
#include <algorithm>
#include <ctime>
#include <iostream>
#include <optional>
#include <string>

#include "simulation/job.hpp"
#include "simulation/mutants/mutants.hpp"
#include "support/catch.hpp"

namespace {

using namespace simulation;

constexpr std::uint64_t kSeeds = 40000;

// The first seed at which a promise is not kept; absent: all were.
std::optional<std::uint64_t> first_failure() {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (!simulate(draw_schedule(seed)).violation.empty()) return seed;
  }
  return std::nullopt;
}

std::string violation_with(int fault, std::uint64_t seed) {
  mutant = fault;
  return simulate(draw_schedule(seed)).violation;
}

double seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("mutants: each fault is found within 40,000 seeds, which keep all promises without it",
          "[mutants]") {
  for (int fault = 1; fault <= static_cast<int>(kMutants.size()); ++fault) {
    const double begin = seconds();
    mutant = fault;
    const auto seed = first_failure();
    const std::string& name = kMutants.at(static_cast<std::size_t>(fault) - 1);
    const std::string violation = seed ? violation_with(fault, *seed) : "NOT FOUND";
    std::cout << name << ": seed " << seed.value_or(0) << ", " << seconds() - begin << " s: " << violation
              << std::endl;
    CAPTURE(name);
    CHECK(seed);
    if (seed) CHECK(violation_with(0, *seed).empty());
  }
}
