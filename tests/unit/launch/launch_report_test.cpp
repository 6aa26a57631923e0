// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/launch_report.hpp"

#include <csignal>

#include "support/catch.hpp"

namespace launch_report_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("launch_report: the exit code is the failed worker's, as a shell gives it", "[launch]") {
  CHECK(exit_code_of({}) == 0);
  CHECK(exit_code_of({.first_failure = WorkerFailure{.status = Exited{42}}}) == 42);
  CHECK(exit_code_of({.first_failure = WorkerFailure{.status = Signaled{SIGSEGV}}}) == 139);
}

TEST_CASE("launch_report: the group's exit code overrides this node's worker", "[launch]") {
  CHECK(exit_code_of({.group_code = 75}) == 75);
  CHECK(exit_code_of({.group_code = 3, .first_failure = WorkerFailure{.status = Exited{1}}}) == 3);
}

TEST_CASE("launch_report: a hang, a signal, a killed supervisor: each overrides the ones before",
          "[launch]") {
  LaunchReport report = {.group_code = 3, .hung = true};
  CHECK(exit_code_of(report) == kHungCode);
  report.stop_signal = SIGTERM;
  CHECK(exit_code_of(report) == 143);
  report.supervisor_lost = true;
  CHECK(exit_code_of(report) == 137);
}

TEST_CASE("launch_report: lost output changes the exit code of success only", "[launch]") {
  CHECK(exit_code_of({.output_lost = true}) == 1);
  CHECK(exit_code_of({.first_failure = WorkerFailure{.status = Exited{42}}, .output_lost = true}) == 42);
}

TEST_CASE("launch_report: a job that was preempted and obeyed asks for its requeue", "[launch]") {
  const LaunchReport noticed = {.preempted = true};
  CHECK(exit_code_of(noticed) == kRequeueCode);
  const LaunchReport told = {.stop_signal = SIGTERM, .preempted = true};
  CHECK(exit_code_of(told) == kRequeueCode);
  SECTION("also with output lost, or when it only lost a peer that was preempted as well") {
    LaunchReport report = told;
    report.output_lost = true;
    report.first_failure = WorkerFailure{
        .status = Exited{1}, .stderr_tail = "RuntimeError: Connection closed by peer [10.0.0.2]:4242\n"};
    report.group_code = kRequeueCode;
    CHECK(exit_code_of(report) == kRequeueCode);
  }
  SECTION("but not when a worker failed by itself") {
    LaunchReport report = noticed;
    report.first_failure = WorkerFailure{.status = Exited{7}};
    CHECK(exit_code_of(report) == 7);
    report = told;
    report.first_failure = WorkerFailure{.status = Exited{7}};
    CHECK(exit_code_of(report) == 143);
  }
  SECTION("nor when a worker had to be killed, here or on another node") {
    LaunchReport report = told;
    report.killed_ranks = {1};
    CHECK(exit_code_of(report) == 143);
    report = told;
    report.group_code = 143;
    CHECK(exit_code_of(report) == 143);
  }
  SECTION("nor when it hung, or lost its supervisor") {
    LaunchReport report = noticed;
    report.hung = true;
    CHECK(exit_code_of(report) == kHungCode);
    report.supervisor_lost = true;
    CHECK(exit_code_of(report) == 137);
  }
}

}  // namespace launch_report_test
