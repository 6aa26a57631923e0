// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/schedule.hpp"

#include <map>

#include "support/catch.hpp"

namespace schedule_test {

using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

// How often each pair meets. Fails when a partner does not agree, or a node meets itself.
std::map<std::pair<int, int>, int> meetings(const Schedule& schedule) {
  std::map<std::pair<int, int>, int> met;
  for (const auto& turn : schedule.turns) {
    for (int one = 0; one < static_cast<int>(turn.size()); ++one) {
      const auto other = turn[static_cast<std::size_t>(one)];
      if (!other) continue;
      CHECK(*other != one);
      CHECK(turn.at(static_cast<std::size_t>(*other)) == one);
      if (one < *other) ++met[{one, *other}];
    }
  }
  return met;
}

}  // namespace

TEST_CASE("schedule: every two nodes meet once, one partner at a time", "[preflight]") {
  for (int nodes = 1; nodes <= 16; ++nodes) {
    const auto met = meetings(make_schedule(nodes, {}));
    CHECK(static_cast<int>(met.size()) == nodes * (nodes - 1) / 2);
    for (const auto& [pair, times] : met) CHECK(times == 1);
  }
}

TEST_CASE("schedule: all transfers of a node take 3 s at most, whatever the number of nodes", "[preflight]") {
  for (const int nodes : {2, 3, 8, 17, 1000}) {
    const Schedule schedule = make_schedule(nodes, {});
    CHECK(schedule.time >= 90ms);
    CHECK(2 * static_cast<int>(schedule.turns.size()) * schedule.time <= 3000ms);
  }
  for (const auto& [pair, times] : meetings(make_schedule(1000, {}))) CHECK(times == 1);
}

TEST_CASE("schedule: pairs that cannot connect do not meet", "[preflight]") {
  const auto met = meetings(make_schedule(4, {{0, 2}}));
  CHECK(met.size() == 5);
  CHECK_FALSE(met.contains({0, 2}));
}

TEST_CASE("schedule: pairs that are kept meet in as few turns as they need", "[preflight]") {
  Schedule schedule = make_schedule(6, {});
  const std::set<std::pair<int, int>> kept = {{0, 3}, {1, 2}, {2, 5}};
  keep_pairs(schedule, kept);
  CHECK(meetings(schedule) == std::map<std::pair<int, int>, int>{{{0, 3}, 1}, {{1, 2}, 1}, {{2, 5}, 1}});
  CHECK(schedule.turns.size() <= 3);
  CHECK(schedule.time == make_schedule(6, {}).time);
  keep_pairs(schedule, {});
  CHECK(schedule.turns.empty());
}

}  // namespace schedule_test
