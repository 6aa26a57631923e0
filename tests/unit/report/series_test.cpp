// SPDX-License-Identifier: Apache-2.0
#include "acc/report/series.hpp"

#include "support/catch.hpp"

namespace series_test {

using namespace acc::launcher;

TEST_CASE("series: cores in use between two samples; memory and loss at each, over all ranks", "[report]") {
  JobHistory history = {.time = {0, 20}};
  AttemptRecord& attempt = history.attempts.emplace_back(AttemptRecord{.time = {0, 20}});
  attempt.ranks[0] = {{.time = 10, .loss = 2, .cpu_seconds = 20, .memory_bytes = 100},
                      {.time = 20, .cpu_seconds = 30}};
  attempt.ranks[1] = {{.time = 10, .loss = 4, .cpu_seconds = 40, .memory_bytes = 300}, {.time = 20}};
  const Series cpu = cpu_series(history, 3);
  REQUIRE(cpu.size() == 2);
  CHECK(cpu[0].mean == 3);
  CHECK(cpu[0].highest == 4);
  CHECK(cpu[1].mean == 1);
  CHECK(memory_series(history, 3).at(0).highest == 300);
  REQUIRE(loss_series(history, 3).size() == 1);
  CHECK(loss_series(history, 3)[0].mean == 3);
  CHECK(loss_series({}).empty());
}

TEST_CASE("series: of GPUs, where it is known", "[report]") {
  JobHistory history = {.time = {0, 20}};
  history.gpus["node0/0"] = {{.time = 10, .percent = 40, .watts = 100}, {.time = 20, .percent = 60}};
  history.gpus["node1/0"] = {{.time = 10, .percent = 80, .watts = 300}};
  const Series use = gpu_use_series(history, 3);
  REQUIRE(use.size() == 2);
  CHECK(use[0].mean == 60);
  CHECK(use[0].highest == 80);
  CHECK(use[1].mean == 60);
  CHECK(gpu_power_series(history, 3).at(0).mean == 200);
  CHECK(gpu_memory_series(history, 3).empty());
}

}  // namespace series_test
