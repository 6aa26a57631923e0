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
  CHECK(totals.mean_percent == 65);
  CHECK(totals.mean_watts == 200);
  CHECK(totals.joules == 701);
}

TEST_CASE("gpu_totals: a driver that was loaded anew takes no energy back", "[report]") {
  EventLogText log;
  for (const int joules : {10, 30, 5, 6})
    log.add(joules == 5   ? 40
            : joules == 6 ? 50
                          : joules,
            "gpu_use", 0, fmt::format(R"("gpus":[0],"joules":[{}])", joules));
  CHECK(gpu_totals(history_of(log)).joules == 21);
}

TEST_CASE("gpu_totals: nothing is known of a job without GPUs", "[report]") {
  const GpuTotals totals = gpu_totals({});
  CHECK(totals.gpus == 0);
  CHECK_FALSE(totals.joules);
  CHECK_FALSE(totals.mean_percent);
}

}  // namespace gpu_totals_test
