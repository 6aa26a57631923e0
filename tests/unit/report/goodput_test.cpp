// SPDX-License-Identifier: Apache-2.0
// The figures are computed by hand.
#include "acc/report/goodput.hpp"

#include "support/catch.hpp"
#include "support/event_log.hpp"

namespace goodput_test {

using namespace acc;
using namespace acc::launcher;
using test::EventLogText;
using test::history_of;

namespace {

Approx seconds(double value) {
  return Approx(value).margin(1e-4);
}

// A rank fails after step 40, and its training goes on after step 20.
EventLogText failing_job(bool over_restarts) {
  EventLogText log;
  log.add(100, "job_started").add(110, "attempt_started");
  log.progress(130, 0, 0, 10, 5, "", over_restarts);
  log.progress(185, 0, 0, 40, 5, R"("data":[10],"saving":[4])", over_restarts);
  log.add(200, "worker_finished").progress(200, 0, 0, 40, 20, R"("data":[10],"saving":[4])", over_restarts);
  log.add(200, "restarting", 0, R"("restart":1,"cause":{"rank":0,"exit_code":1})")
      .add(210, "attempt_started", 1);
  log.progress(230, 1, 0, 22, 0, "", over_restarts);
  log.progress(270, 1, 0, 62, 0, R"("data":[8])", over_restarts);
  log.add(275, "worker_finished", 1)
      .progress(275, 1, 0, 62, 5, R"("data":[8],"evaluation":[3])", over_restarts);
  return log.add(280, "finished", 1, R"("exit_code":0)");
}

}  // namespace

TEST_CASE("goodput: the parts of a job with a restart", "[report]") {
  const Goodput goodput = goodput_of(history_of(failing_job(true)));
  const TimeShares& shares = goodput.shares;
  CHECK(shares.waiting == seconds(10));
  CHECK(shares.starting == seconds(15));
  // 55 - 10 - 4 s of the first attempt; of 40 steps in 40 - 8 s of the second, 18 were repeated.
  CHECK(shares.counted == seconds(41 + 32.0 * 22 / 40));
  CHECK(shares.repeated == seconds(32.0 * 18 / 40));
  CHECK(shares.data == seconds(18));
  CHECK(shares.saving == seconds(4));
  CHECK(shares.evaluation == seconds(3));
  CHECK(shares.restarting == seconds(20 + 10 + 20));
  CHECK(shares.ending == seconds(2 + 5));
  CHECK(shares.unknown == 0);
  CHECK(shares.total() == seconds(180));
  CHECK(goodput.ratio() == Approx(58.6 / 180).epsilon(1e-4));
  CHECK(goodput.steps == 62);
  CHECK(goodput.repeated_is_known);
}

TEST_CASE(
    "goodput: where steps are counted from 0 at each start, it is said that repeated ones are not known",
    "[report]") {
  const Goodput goodput = goodput_of(history_of(failing_job(false)));
  CHECK_FALSE(goodput.repeated_is_known);
  CHECK(goodput.shares.repeated == 0);
  CHECK(goodput.shares.counted == seconds(41 + 32));
  CHECK(goodput.steps == 40 + 62);
}

TEST_CASE("goodput: the mean of the ranks is taken, and a hang is a wait", "[report]") {
  EventLogText log;
  log.add(0.5, "attempt_started");
  log.progress(10.5, 0, 0, 1, 0).progress(10.5, 0, 1, 1, 0);
  log.progress(50.5, 0, 0, 21, 0, R"("data":[8])").progress(50.5, 0, 1, 21, 0, R"("data":[4])");
  log.add(90.5, "hang_found", 0, R"("idle_s":30,"then":"report")");
  log.progress(110.5, 0, 0, 31, 0, R"("data":[8])").progress(110.5, 0, 1, 31, 0, R"("data":[4])");
  log.add(110.5, "worker_finished");
  const TimeShares shares = goodput_of(history_of(log)).shares;
  CHECK(shares.starting == seconds(10));
  CHECK(shares.data == seconds(6));
  CHECK(shares.waiting == seconds(50));
  CHECK(shares.counted == seconds(34 + 10));
  CHECK(shares.total() == seconds(110));
}

TEST_CASE("goodput: several trainings in one process repeat nothing", "[report]") {
  EventLogText log;
  log.add(0.5, "attempt_started").progress(10.5, 0, 0, 1, 0).progress(20.5, 0, 0, 90, 0);
  log.progress(30.5, 0, 0, 5, 0, "", false).progress(40.5, 0, 0, 80, 0, "", false);
  log.progress(50.5, 0, 0, 80, 0, "", false).progress(60.5, 0, 0, 70, 0, "", false);
  const Goodput goodput = goodput_of(history_of(log.add(60.5, "worker_finished")));
  CHECK(goodput.shares.counted == seconds(50));
  CHECK(goodput.shares.repeated == 0);
  CHECK(goodput.steps == 90 + 80 + 70);
  CHECK(goodput.repeated_is_known);
}

TEST_CASE("goodput: a training that has not ended a step is another one, too", "[report]") {
  EventLogText log;
  log.add(0.5, "attempt_started").progress(10, 0, 0, 80, 0, "", false).progress(20, 0, 0, 0, 0, "", false);
  CHECK(goodput_of(history_of(log.progress(30, 0, 0, 100, 0, "", false))).steps == 180);
}

TEST_CASE("goodput: the parts add up, too, if a rank runs two programs, one after the other", "[report]") {
  EventLogText log;
  log.add(0.5, "attempt_started").progress(10.5, 0, 0, 9, 0, R"("other":[9])", false);
  log.progress(60.5, 0, 0, 50, 0, R"("other":[49],"data":[10])", false);
  // The second one waits for its data before its first step.
  log.add(120.5, "progress", 0,
          R"("ranks":[0],"steps":[0],"counts_over_restarts":[false],"since_step_seconds":[null],)"
          R"("spent_seconds":{"data":[50]})");
  log.progress(160.5, 0, 0, 20, 5, R"("other":[20],"data":[65])", false).add(160.5, "worker_finished");
  const Goodput goodput = goodput_of(history_of(log));
  CHECK(goodput.shares.starting == seconds(10));
  CHECK(goodput.shares.data == seconds(10 + 65));
  CHECK(goodput.shares.counted == seconds(40 + 30));
  CHECK(goodput.shares.ending == seconds(5));
  CHECK(goodput.shares.total() == seconds(160));
  CHECK(goodput.steps == 70);
}

TEST_CASE("goodput: a training that has not ended a step when the job ends has no steps", "[report]") {
  EventLogText log;
  log.add(0.5, "attempt_started").progress(10.5, 0, 0, 9, 0).progress(60.5, 0, 0, 50, 0);
  log.add(120.5, "progress", 0, R"("ranks":[0],"steps":[0],"since_step_seconds":[null])");
  const TimeShares shares = goodput_of(history_of(log.add(160.5, "worker_finished"))).shares;
  CHECK(shares.starting == seconds(10));
  CHECK(shares.counted == seconds(50));
  CHECK(shares.ending == seconds(100));
}

TEST_CASE("goodput: of a job that says nothing nothing is known", "[report]") {
  EventLogText log;
  log.add(10, "attempt_started").add(30, "worker_finished").add(31, "finished", 0, R"("exit_code":0)");
  const Goodput goodput = goodput_of(history_of(log));
  CHECK(goodput.shares.unknown == seconds(20));
  CHECK(goodput.ratio() == 0);
  CHECK(goodput_of({}).ratio() == 0);
}

TEST_CASE("goodput: an attempt that fails before its first step is lost to the restart", "[report]") {
  EventLogText log;
  log.add(0.5, "attempt_started")
      .progress(10.5, 0, 0, 1, 0)
      .progress(20.5, 0, 0, 11, 0)
      .add(20.5, "worker_finished");
  log.add(22.5, "attempt_started", 1).add(30.5, "worker_finished", 1);
  log.add(31.5, "attempt_started", 2).progress(41.5, 2, 0, 12, 0).add(41.5, "worker_finished", 2);
  const TimeShares shares = goodput_of(history_of(log)).shares;
  CHECK(shares.counted == seconds(10));
  CHECK(shares.restarting == seconds(2 + 8 + 1 + 10));
}

}  // namespace goodput_test
