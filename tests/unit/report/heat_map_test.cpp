// SPDX-License-Identifier: Apache-2.0
#include "acc/report/heat_map.hpp"

#include "support/catch.hpp"

namespace heat_map_test {

using namespace acc;
using namespace acc::launcher;

namespace {

RankSample sample(double time, std::int64_t steps, float data, float other) {
  return {.time = time, .steps = steps, .step_ended = time, .spent = {other, data}};
}

JobHistory history_of(std::map<int, std::vector<RankSample>> ranks) {
  JobHistory history = {.time = {0, 40}};
  history.attempts.push_back({.time = history.time, .ranks = std::move(ranks)});
  return history;
}

}  // namespace

TEST_CASE("heat_map: a step's time is the mean between two samples", "[report]") {
  const JobHistory history =
      history_of({{4, {sample(10, 1, 0, 0), sample(20, 11, 0, 0), sample(30, 13, 0, 0)}}});
  const RankGrid grid = step_time_grid(history, {.columns = 4});
  REQUIRE(grid.cells.size() == 4);
  CHECK_FALSE(grid.cells[0]);
  CHECK(grid.cells[1] == 1);
  CHECK(grid.cells[2] == 5);
  CHECK_FALSE(grid.cells[3]);
  CHECK(median(grid.cells) == 5);
  CHECK(median({}) == 0);
}

TEST_CASE("heat_map: another program of a rank counts its steps and its time from its start", "[report]") {
  const JobHistory history = history_of(
      {{0, {sample(10, 91, 0, 9), sample(20, 101, 5, 14), sample(30, 2, 1, 3), sample(40, 6, 6, 8)}}});
  const RankGrid steps = step_time_grid(history, {.columns = 4});
  CHECK(steps.cells[1] == 1);
  CHECK_FALSE(steps.cells[2]);
  CHECK(steps.cells[3] == 2.5F);
  CHECK(section_grid(history, Section::data, {.columns = 4}).cells[2] == 0.25F);
}

TEST_CASE("heat_map: of ranks that share a row the slowest is shown", "[report]") {
  std::map<int, std::vector<RankSample>> ranks;
  for (int rank = 0; rank < 5; ++rank)
    ranks[rank] = {sample(10, 0, 0, 0), sample(20, rank == 1 ? 5 : 10, 0, 0)};
  const RankGrid grid = step_time_grid(history_of(ranks), {.max_rows = 3, .columns = 4});
  REQUIRE(grid.rows.size() == 3);
  CHECK(grid.rows[0].first == 0);
  CHECK(grid.rows[0].last == 1);
  CHECK(grid.rows[2].last == 4);
  CHECK(grid.cells[1] == 2);
  CHECK(grid.cells[5] == 1);
}

TEST_CASE("heat_map: a section's part of the time", "[report]") {
  const JobHistory history = history_of({{0, {sample(10, 1, 0, 10), sample(20, 2, 4, 16)}}});
  const RankGrid grid = section_grid(history, Section::data, {.columns = 4});
  CHECK(grid.cells[0] == 0);
  CHECK(grid.cells[1] == 0.4F);
  CHECK_FALSE(grid.cells[2]);
}

}  // namespace heat_map_test
