// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/launch_report.hpp"

#include <csignal>

#include "support/catch.hpp"

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
