// SPDX-License-Identifier: Apache-2.0
// Whether the exploration would notice faults: a copy of memory_group.cpp has each of mutate.py's.
#include <algorithm>
#include <string>
#include <utility>

#include "exploration/mutants/mutants.hpp"
#include "exploration/scenarios.hpp"
#include "support/catch.hpp"

namespace memory_group_mutants_test {

namespace {

using exploration::Exploration;
using exploration::Report;

struct Finding {
  std::string scenario = {};
  Report report = {};
};

// No deviation on all scenarios first: many faults need none.
Finding first_failure() {
  for (const int bound : {0, 1}) {
    for (const Exploration& exploration : exploration::explorations()) {
      Report report = explore(exploration, std::min(bound, exploration.bound), /*walks=*/0);
      if (!report.failure.empty()) return {.scenario = exploration.name, .report = std::move(report)};
    }
  }
  return {};
}

}  // namespace

TEST_CASE("mutants: each fault is found, and its schedule fails with the same line again", "[runtime]") {
  for (std::size_t i = 0; i < exploration::kMutants.size(); ++i) {
    exploration::mutant = static_cast<int>(i) + 1;
    const Finding finding = first_failure();
    INFO(exploration::kMutants[i] << "\n" << text_of(finding.scenario, finding.report));
    CHECK(!finding.report.failure.empty());
    if (finding.report.failure.empty()) continue;
    const Report again = exploration::again(finding.scenario + ": " + finding.report.schedule);
    CHECK(again.failure == finding.report.failure);
    CHECK(again.trace == finding.report.trace);
    exploration::mutant = 0;
    CHECK(exploration::again(finding.scenario + ": " + finding.report.schedule).failure.empty());
  }
}

}  // namespace memory_group_mutants_test
