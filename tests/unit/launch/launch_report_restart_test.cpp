// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "acc/launch/launch_report.hpp"
#include "acc/plan/flag_grammars.hpp"
#include "support/catch.hpp"

namespace launch_report_restart_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

const WorkerFailure kExit2 = {.status = Exited{2}};
const WorkerFailure kKilled = {.status = Signaled{SIGKILL}};
const WorkerFailure kOutOfMemory = {.status = Signaled{SIGKILL}, .out_of_memory = true};

LaunchPlan plan_of(const std::string& retry_on) {
  LaunchPlan plan;
  plan.max_restarts = 3;
  plan.retry_on = parse_retry_on(retry_on, "");
  return plan;
}

bool restarts(const std::string& retry_on, const WorkerFailure& failure) {
  return decide_restart(plan_of(retry_on), 0, failure, 1min).restart;
}

}  // namespace

TEST_CASE("restart_decision: every failure is restarted while restarts are left", "[launch]") {
  CHECK(decide_restart(plan_of("all"), 2, kExit2, 0ms) == RestartDecision{.restart = true});
  CHECK(decide_restart(plan_of("all"), 3, kExit2, 0ms) == RestartDecision{});
}

TEST_CASE("restart_decision: only listed failures are restarted, and no excluded one", "[launch]") {
  CHECK(restarts("2", kExit2));
  CHECK_FALSE(restarts("2", kKilled));
  CHECK(restarts("signal", kKilled));
  CHECK(restarts("SIGKILL", kKilled));
  CHECK_FALSE(restarts("oom", kKilled));
  CHECK(restarts("oom", kOutOfMemory));
  CHECK_FALSE(restarts("signal,!oom", kOutOfMemory));
  CHECK(decide_restart(plan_of("!2"), 0, kExit2, 1min).reason ==
        "not restarted: exit code 2 is not among the failures of --retry-on");
}

TEST_CASE("restart_decision: a failure soon after the start is not restarted", "[launch]") {
  LaunchPlan plan = plan_of("all");
  plan.min_uptime = 10s;
  CHECK(decide_restart(plan, 0, kExit2, 10s).restart);
  CHECK(decide_restart(plan, 0, kExit2, 2500ms).reason ==
        "not restarted: failed 2.5 s after its start (--min-uptime 10)");
}

}  // namespace launch_report_restart_test
