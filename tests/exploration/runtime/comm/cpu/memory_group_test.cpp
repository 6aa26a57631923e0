// SPDX-License-Identifier: Apache-2.0
// The real memory_group.cpp, in executions whose order is chosen (exploration/execution.hpp).
#include <cstdlib>
#include <string>

#include "exploration/scenarios.hpp"
#include "support/catch.hpp"

namespace memory_group_test {

namespace {

using exploration::Exploration;

std::uint64_t number_of(const char* variable, std::uint64_t default_value) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? default_value : std::stoull(text);
}

}  // namespace

TEST_CASE("memory_group: whatever the order, results are right or ranks fail, and nobody waits in vain",
          "[runtime]") {
  for (const Exploration& exploration : exploration::explorations()) {
    const exploration::Report report = explore(exploration, exploration.bound, /*walks=*/500);
    INFO(text_of(exploration.name, report));
    CHECK(report.failure.empty());
  }
}

// ACC_BOUND=3 ACC_WALKS=1000000 ACC_SEED=7 ACC_SCENARIO='2 ranks' acc-test-exploration '[.long]'
TEST_CASE("memory_group: a longer exploration", "[.long]") {
  const char* const chosen = std::getenv("ACC_SCENARIO");
  for (const Exploration& exploration : exploration::explorations()) {
    if (chosen != nullptr && exploration.name.find(chosen) == std::string::npos) continue;
    const exploration::Report report = explore(exploration, static_cast<int>(number_of("ACC_BOUND", 2)),
                                               number_of("ACC_WALKS", 100'000), number_of("ACC_SEED", 1));
    WARN(exploration.name << ": " << report.executions << " executions");
    INFO(text_of(exploration.name, report));
    CHECK(report.failure.empty());
  }
}

// ACC_SCHEDULE='2 ranks, sums: 0@12>1' acc-test-exploration '[.again]'
TEST_CASE("memory_group: the execution of a schedule", "[.again]") {
  const char* const text = std::getenv("ACC_SCHEDULE");
  REQUIRE(text != nullptr);
  const exploration::Report report = exploration::again(text);
  WARN(text_of("the schedule", report));
  CHECK(report.failure.empty());
}

}  // namespace memory_group_test
