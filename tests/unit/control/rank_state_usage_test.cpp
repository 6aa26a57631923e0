// SPDX-License-Identifier: Apache-2.0
#include "acc/control/rank_state.hpp"
#include "support/catch.hpp"

namespace rank_state_usage_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

// A shell (10) whose child (11) computes, beside another rank (20). No such processes exist.
constexpr pid_t kShell = 4'000'010;
constexpr pid_t kChild = 4'000'011;

ProcessTable table(std::chrono::milliseconds child_cpu) {
  ProcessTable table;
  table.add({.pid = kShell, .parent = 1, .state = 'S', .threads = 1, .resident_bytes = 100});
  table.add({.pid = kChild,
             .parent = kShell,
             .state = 'R',
             .threads = 4,
             .cpu_time = child_cpu,
             .resident_bytes = 1000});
  table.add({.pid = 4'000'020, .parent = 1, .state = 'R', .threads = 7, .resident_bytes = 5});
  return table;
}

}  // namespace

TEST_CASE("rank_usage: a rank is its process and all descendants", "[control]") {
  CountedProcesses counted;
  const RankUsage usage =
      rank_usage({.pid = kShell}, table(500ms), table(600ms), 200ms,
                 {{.gpu = 1, .pid = kChild, .memory_bytes = 30, .gpu_use = 50, .gpu_watts = 90},
                  {.gpu = 1, .pid = kShell, .memory_bytes = 3, .gpu_use = 50, .gpu_watts = 90},
                  {.gpu = 2, .pid = 4'000'020, .memory_bytes = 9}},
                 counted);
  CHECK(usage.state == "running");
  CHECK(usage.processes == 2);
  CHECK(usage.threads == 5);
  CHECK(usage.memory_bytes == 1100);
  CHECK(usage.cpu_percent == 50.0);
  CHECK(usage.cpu_time == 600ms);
  REQUIRE(usage.gpus.size() == 1);
  CHECK(usage.gpus[0].index == 1);
  CHECK(usage.gpus[0].memory_bytes == 33);
  CHECK(usage.gpus[0].use == 50);
  CHECK(usage.gpus[0].watts == 90);
}

TEST_CASE("rank_usage: a rank that has ended uses nothing", "[control]") {
  CountedProcesses counted;
  const RankUsage ended = rank_usage({.pid = kShell, .ended = "exit code 3"}, {}, {}, 200ms, {}, counted);
  CHECK(ended.state == "exit code 3");
  CHECK(ended.processes == 0);
  CHECK(rank_usage({.pid = kShell}, table(0ms), {}, 200ms, {}, counted).state == "ended");
}

TEST_CASE("rank_usage: the first sample has no CPU use", "[control]") {
  CountedProcesses counted;
  CHECK_FALSE(rank_usage({.pid = kShell}, {}, table(0ms), 200ms, {}, counted).cpu_percent);
}

TEST_CASE("rank_usage: a process counts for one rank of a job, and its memory is read once", "[control]") {
  CountedProcesses counted;
  const auto processes_of_rank = [&](pid_t pid) {
    return rank_usage({.pid = pid}, {}, table(0ms), 200ms, {}, counted).processes;
  };
  CHECK(processes_of_rank(kShell) == 2);
  CHECK(processes_of_rank(kShell) == 0);
  CHECK(processes_of_rank(kChild) == 0);
  counted.of_job.clear();  // of the next job
  CHECK(processes_of_rank(kChild) == 1);
  CHECK(processes_of_rank(kShell) == 1);
  counted.of_job.clear();
  counted.memory_bytes[kChild] = 7;
  CHECK(rank_usage({.pid = kChild}, {}, table(0ms), 200ms, {}, counted).memory_bytes == 7);
}

TEST_CASE("rank_usage: the kernel's state letters have names", "[control]") {
  CHECK(state_in_words('R') == "running");
  CHECK(state_in_words('S') == "sleeping");
  CHECK(state_in_words('D') == "waiting for a device");
  CHECK(state_in_words('T') == "stopped");
  CHECK(state_in_words('t') == "traced");
  CHECK(state_in_words('Z') == "ended");
}

}  // namespace rank_state_usage_test
