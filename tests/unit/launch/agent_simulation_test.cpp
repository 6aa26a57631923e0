// SPDX-License-Identifier: Apache-2.0
// The agent in executions that nobody thought of: workers, other nodes, users and engines do what a seed
// says.
#include <cstdlib>
#include <string>

#include "support/catch.hpp"
#include "support/simulated_job.hpp"

namespace agent_simulation_test {

using namespace acc::test;

namespace {

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoull(text);
}

// What a seed violates, with the disturbances that it takes.
std::string violation_of(std::uint64_t seed) {
  const Schedule schedule = shortened(schedule_of(seed));
  std::string text;
  for (const Disturbance& one : schedule.disturbances) text += to_string(one) + "\n";
  try {
    execute(schedule);
  } catch (const Violation& violation) {
    return violation.what() +
           ("\nneeds " + std::to_string(schedule.disturbances.size()) + " disturbances\n" + text);
  }
  return {};
}

}  // namespace

TEST_CASE("agent simulation: whatever happens, the agent keeps its promises", "[launch]") {
  const std::uint64_t first = number_of("ACC_SEED", 1);
  const std::uint64_t count = number_of("ACC_SEEDS", 20'000);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    try {
      execute(schedule_of(seed));
    } catch (const Violation&) {
      FAIL(violation_of(seed));
    }
  }
}

TEST_CASE("agent simulation: a seed happens in the same way again", "[launch]") {
  for (std::uint64_t seed = 1; seed < 200; ++seed)
    CHECK(execute(schedule_of(seed)) == execute(schedule_of(seed)));
}

}  // namespace agent_simulation_test
