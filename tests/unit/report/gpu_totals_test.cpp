// SPDX-License-Identifier: Apache-2.0
#include "acc/report/gpu_totals.hpp"

#include "support/catch.hpp"
#include "support/event_log.hpp"

namespace gpu_totals_test {

using namespace acc::launcher;
using acc::test::EventLogText;
using acc::test::history_of;

TEST_CASE("gpu_totals: energy is that of all GPUs between their first and last samples", "[report]") {
  EventLogText log;
  log.add(1, "gpu_use", 0, R"("gpus":[0,1],"use_percent":[50,70],"watts":[100,null],"joules":[1000,7])")
      .add(2, "gpu_use", 0, R"("gpus":[0,1],"use_percent":[60,80],"watts":[300,null],"joules":[1500,null])")
      .add(3, "gpu_use", 1, R"("gpus":[0],"use_percent":[null],"watts":[null],"joules":[1700])");
  EventLogText other("node1", 1);
  other.add(1, "gpu_use", 0, R"("gpus":[0],"joules":[5])").add(2, "gpu_use", 0, R"("gpus":[0],"joules":[6])");
  const GpuTotals totals = gpu_totals(history_of(log, other));
  CHECK(totals.gpus == 3);
  CHECK(totals.mean_watts == Approx(200));
  CHECK(totals.joules == 701);
}

TEST_CASE("gpu_totals: means are over time, however often it was noted", "[report]") {
  EventLogText log;
  for (int second = 1; second <= 60; ++second)
    log.add(second, "gpu_use", 0, R"("gpus":[0],"use_percent":[0])");
  for (int minute = 1; minute <= 61; ++minute)
    log.add(1 + 60 * minute, "gpu_use", 0, R"("gpus":[0],"use_percent":[90])");
  CHECK(gpu_totals(history_of(log)).mean_percent == Approx(88.5).margin(0.1));
}

TEST_CASE("gpu_totals: a GPU is known by its UUID, wherever it is", "[report]") {
  EventLogText log;
  log.add(1, "gpu_use", 0, R"("gpus":[0],"uuids":["GPU-a"],"joules":[100])")
      .add(2, "gpu_use", 0, R"("gpus":[0],"uuids":["GPU-b"],"joules":[700])")
      .add(3, "gpu_use", 0, R"("gpus":[0],"uuids":["GPU-a"],"joules":[150])")
      .add(4, "gpu_use", 0, R"("gpus":[0],"uuids":["GPU-b"],"joules":[710])");
  const GpuTotals totals = gpu_totals(history_of(log));
  CHECK(totals.gpus == 2);
  CHECK(totals.joules == 60);
}

TEST_CASE("gpu_totals: a counter that goes back, or jumps, is another one", "[report]") {
  EventLogText log;
  const double counters[] = {10, 30, 5, 6, 9e9, 9e9 + 2};
  for (std::size_t i = 0; i < std::size(counters); ++i)
    log.add(10.0 * static_cast<double>(i + 1), "gpu_use", 0,
            fmt::format(R"("gpus":[0],"joules":[{}])", counters[i]));
  CHECK(gpu_totals(history_of(log)).joules == 23);
}

TEST_CASE("gpu_totals: GPUs of others do not count where it is known which are the job's", "[report]") {
  EventLogText log;
  log.add(1, "gpu_use", 0, R"("gpus":[0,1],"ranks":[[],[]],"use_percent":[0,0])")
      .add(61, "gpu_use", 0, R"("gpus":[1],"ranks":[[0]],"use_percent":[80])")
      .add(121, "gpu_use", 0, R"("gpus":[1],"ranks":[[0]],"use_percent":[80])");
  const GpuTotals totals = gpu_totals(history_of(log));
  CHECK(totals.gpus == 1);
  CHECK(totals.mean_percent == Approx(80));
}

TEST_CASE("gpu_totals: nothing is known of a job without GPUs", "[report]") {
  const GpuTotals totals = gpu_totals({});
  CHECK(totals.gpus == 0);
  CHECK_FALSE(totals.joules);
  CHECK_FALSE(totals.mean_percent);
}

}  // namespace gpu_totals_test
