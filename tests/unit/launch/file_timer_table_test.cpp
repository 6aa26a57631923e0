// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <csignal>

#include "acc/launch/file_timer.hpp"
#include "support/catch.hpp"

namespace file_timer_table_test {

using acc::launcher::TimerTable;
using Expired = TimerTable::Expired;

namespace {

// The beginning of both clocks.
constexpr TimerTable::Now kBegin = {.wall = {}, .running = {}};

TimerTable::Time at(int seconds) {
  return TimerTable::Time(std::chrono::seconds(seconds));
}

std::string request(int pid, const std::string& scope, double when, int signal = SIGKILL) {
  return fmt::format(R"({{"version": 1, "pid": {}, "scope_id": "{}", "expiration_time": {}, "signal": {}}})",
                     pid, scope, when, signal);
}

std::uint64_t no_process(pid_t) {
  return 0;
}

}  // namespace

TEST_CASE("timer_table: a missed deadline expires once", "[launch]") {
  TimerTable table(no_process);
  CHECK_FALSE(table.next());
  CHECK(table.add(request(7, "step", 100.5), kBegin));
  CHECK(table.add(request(8, "step", 90), kBegin));
  CHECK(table.next() == at(90));
  CHECK(table.expire(at(89)).empty());
  CHECK(table.expire(at(90)) == std::vector<Expired>{{8, "step", SIGKILL}});
  CHECK(table.expire(at(200)) == std::vector<Expired>{{7, "step", SIGKILL}});
  CHECK_FALSE(table.next());
}

TEST_CASE("timer_table: a release or a new time replaces the old one", "[launch]") {
  TimerTable table(no_process);
  table.add(request(7, "step", 100), kBegin);
  table.add(request(7, "step", 200), kBegin);
  CHECK(table.expire(at(150)).empty());
  CHECK(table.add(request(7, "step", -1, 0), kBegin));
  CHECK(table.add(request(7, "other", -1, 0), kBegin));
  CHECK_FALSE(table.next());
}

TEST_CASE("timer_table: the oldest timer with a signal determines the signal", "[launch]") {
  TimerTable table(no_process);
  table.add(request(7, "a", 10, 0), kBegin);
  table.add(request(7, "b", 30, SIGTERM), kBegin);
  table.add(request(7, "c", 20, SIGINT), kBegin);
  CHECK(table.expire(at(50)) == std::vector<Expired>{{7, "c", SIGINT}});
  table.add(request(9, "a", 10, 0), kBegin);
  CHECK(table.expire(at(50)).empty());
  CHECK_FALSE(table.next());
}

TEST_CASE("timer_table: a process with the pid of one that has ended has none of its timers", "[launch]") {
  std::uint64_t start = 100;
  TimerTable table([&](pid_t) { return start; });
  table.add(request(7, "step", 10), kBegin);
  start = 200;
  CHECK(table.expire(at(10)) == std::vector<Expired>{{7, "step", SIGKILL, 100}});
  start = 100;
  table.add(request(7, "step", 20), kBegin);
  start = 200;
  table.add(request(7, "other", 30), kBegin);
  CHECK(table.expire(at(20)).empty());
  CHECK(table.expire(at(30)) == std::vector<Expired>{{7, "other", SIGKILL, 200}});
}

TEST_CASE("timer_table: a deadline moves with the time that acc could not run, and not with the wall clock",
          "[launch]") {
  const TimerTable::Now later = {.wall = std::chrono::system_clock::time_point(std::chrono::hours(1)),
                                 .running = at(10)};
  TimerTable table(no_process);
  CHECK(table.add(request(7, "step", 3605), later));
  CHECK(table.next() == at(15));
}

TEST_CASE("timer_table: invalid requests are refused", "[launch]") {
  TimerTable table(no_process);
  for (const auto* line :
       {"", "{", "[]", "{}", R"({"pid": 1})", R"({"pid":0,"scope_id":"","expiration_time":1,"signal":9})",
        R"({"pid":1,"scope_id":2,"expiration_time":1,"signal":9})",
        R"({"pid":1,"scope_id":"","expiration_time":1,"signal":900})"}) {
    CHECK_FALSE(table.add(line, kBegin));
  }
  CHECK(table.add(request(1, "", 1e300), kBegin));
  CHECK(table.expire(at(1'000'000)).empty());
}

}  // namespace file_timer_table_test
