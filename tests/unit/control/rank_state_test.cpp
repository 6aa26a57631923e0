// SPDX-License-Identifier: Apache-2.0
#include "acc/control/rank_state.hpp"

#include <unistd.h>

#include "support/catch.hpp"

namespace rank_state_test {

using namespace acc;
using namespace acc::launcher;

namespace {

std::vector<RankState> ranks(const std::vector<std::string>& activities,
                             const std::vector<double>& cpu = {}) {
  std::vector<RankState> states;
  for (std::size_t i = 0; i < activities.size(); ++i) {
    states.push_back({.rank = static_cast<int>(i), .activity = activities[i], .processes = 1});
    if (!cpu.empty()) states.back().cpu_percent = cpu[i];
  }
  return states;
}

}  // namespace

TEST_CASE("rank_state: a rank that differs from the majority is named", "[control]") {
  CHECK(find_stragglers(ranks({"sleeping", "sleeping", "stopped", "sleeping"})).text ==
        "rank 2 differs: stopped, while the other 3 are sleeping");
  CHECK(find_stragglers(ranks({"a", "b", "b", "b", "b", "a"})).ranks == std::vector<int>{0, 5});
  CHECK(find_stragglers(ranks({"a", "b", "b", "b", "b", "a"})).text ==
        "ranks 0, 5 differ: a, while the other 4 are b");
  CHECK(find_stragglers(ranks({"a", "a", "a", "b", "c"})).text ==
        "rank 3 differs: b, while the other 3 are a\nrank 4 differs: c, while the other 3 are a");
}

TEST_CASE("rank_state: without a majority no rank differs", "[control]") {
  CHECK(find_stragglers({}).text.empty());
  CHECK(find_stragglers(ranks({"a", "a", "a"})).text.empty());
  CHECK(find_stragglers(ranks({"a", "b"})).text.empty());
  CHECK(find_stragglers(ranks({"a", "b", "a", "b"})).text.empty());
}

TEST_CASE("rank_state: the rank that waits while the others spin is named", "[control]") {
  CHECK(find_stragglers(ranks({"running", "running", "sleeping", "running"}, {99, 100, 3, 98})).text ==
        "rank 2 differs: at most 20% CPU, while the other 3 are near 99%");
  CHECK(find_stragglers(ranks({"a", "a", "a"}, {1, 0, 2})).text.empty());
  CHECK(find_stragglers(ranks({"a", "a", "b"}, {1, 0, 2})).text ==
        "rank 2 differs: b, while the other 2 are a");
}

TEST_CASE("rank_state: busy ranks do not differ by what they do at the moment", "[control]") {
  CHECK(find_stragglers(ranks({"running", "sleeping", "running"}, {95, 90, 99})).text.empty());
}

TEST_CASE("rank_state: a rank that has ended is not compared", "[control]") {
  std::vector<RankState> states = ranks({"sleeping", "sleeping", "exit code 0"});
  states[2].processes = 0;
  CHECK(find_stragglers(states).text.empty());
}

TEST_CASE("rank_state: a process is where its main thread is", "[control]") {
  const ProcessTable table = ProcessTable::read();
  const RankState state =
      state_of({.rank = 3, .pid = ::getpid()}, table, table, std::chrono::milliseconds(100));
  CHECK(state.rank == 3);
  CHECK(state.processes >= 1);
  CHECK(to_string(state) == "running, 0% CPU");
  CHECK(to_string(state_of({.pid = 4'000'001}, {}, {}, {})) == "ended");
  CHECK(state_of({.pid = ::getpid(), .ended = "exit code 2"}, table, table, {}).activity == "exit code 2");
}

TEST_CASE("rank_state: ranks that say how far they are, those first that the others wait for", "[control]") {
  const auto text = [](const std::map<int, ProgressView>& ranks) {
    std::map<int, RankStanding> standing;
    for (const auto& [rank, progress] : ranks) standing[rank] = standing_of(progress);
    return find_stragglers(standing, {}).text;
  };
  const ProgressView reading = {.steps = 812, .section = "data"};
  const ProgressView waiting = {.steps = 812, .section = "communication", .collective = "all_reduce"};
  const ProgressView averaging = {.steps = 812, .section = "backward"};
  CHECK(text({{0, waiting}, {1, reading}, {2, waiting}, {3, waiting}}) ==
        "rank 1 is in data after step 812; ranks 0, 2, 3 wait in all_reduce");
  CHECK(text({{0, averaging}, {1, reading}}) ==
        "rank 1 is in data after step 812; rank 0 waits in backward after step 812");
  ProgressView broadcasting = waiting;
  broadcasting.collective = "broadcast";
  CHECK(text({{0, waiting}, {1, waiting}, {2, broadcasting}}) ==
        "rank 2 waits in broadcast; ranks 0, 1 wait in all_reduce");
  CHECK(find_stragglers(std::map<int, RankStanding>{{0, standing_of(waiting)}}, {{1, "exit code 0"}}).text ==
        "rank 1 has ended with exit code 0; rank 0 waits in all_reduce");
}

TEST_CASE("rank_state: how long a rank has been where it is", "[control]") {
  CHECK(to_string(ProgressView{.steps = 3, .section = "data", .in_section = std::chrono::seconds(9)}) ==
        "in data for 9s, after step 3");
  CHECK(to_string(ProgressView{.section = "communication",
                               .in_section = std::chrono::seconds(70),
                               .collective = "gather",
                               .in_collective = std::chrono::seconds(69)}) ==
        "in gather for 1m09s, after step 0");
}

}  // namespace rank_state_test
