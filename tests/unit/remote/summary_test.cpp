// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/summary.hpp"

#include "acc/launch/console.hpp"
#include "support/catch.hpp"

namespace summary_test {

using acc::launcher::code_of_job;
using acc::launcher::HostEnd;
using acc::launcher::HostProblem;
using acc::launcher::merge_problems;
using acc::launcher::RepeatFilter;
using acc::launcher::with_host;

TEST_CASE("summary: the exit code is that of the first host that failed", "[remote]") {
  CHECK(code_of_job({{0}, {0}}, false) == 0);
  CHECK(code_of_job({{0}, {7}, {1}}, false) == 7);
  CHECK(code_of_job({{0}, {}}, false) == 75);
  CHECK(code_of_job({{7}, {}}, false) == 7);
}

TEST_CASE("summary: a job that survives a loss is well if the others are", "[remote]") {
  CHECK(code_of_job({{}, {0}}, true) == 0);
  CHECK(code_of_job({{}, {3}}, true) == 3);
  CHECK(code_of_job({{}, {}}, true) == 75);
}

TEST_CASE("summary: a problem of several hosts is named once, with them", "[remote]") {
  const acc::Problem missing = {.what = "no such file", .where = "train.py", .hint = "look"};
  const acc::Problem locked = {.what = "ssh was not let in"};
  const std::vector<acc::Problem> merged = merge_problems({{"a", missing}, {"b", locked}, {"c", missing}});
  REQUIRE(merged.size() == 2);
  CHECK(acc::to_string(merged[0]) == "a, c: train.py: no such file (look)");
  CHECK(acc::to_string(merged[1]) == "b: ssh was not let in");
  std::vector<HostProblem> many;
  for (int i = 0; i < 64; ++i) many.push_back({"n" + std::to_string(i), locked});
  CHECK(acc::to_string(merge_problems(many).at(0)) ==
        "n0, n1, n2, n3, n4, n5, n6, n7 and 56 others: ssh was not let in");
}

TEST_CASE("summary: lines of acc on a host get its name", "[remote]") {
  CHECK(with_host("acc: warning: it is full\n", "b") == "acc: b: warning: it is full\n");
  CHECK(with_host("acc: rank 1 failed\n  time: now\n", "b") == "acc: b: rank 1 failed\n  time: now\n");
  CHECK(with_host("12:00 text\n", "b") == "b: 12:00 text\n");
}

TEST_CASE("summary: what several hosts say alike is said once", "[remote]") {
  const acc::RunningClock::time_point now;
  RepeatFilter said;
  CHECK(said.is_new("waiting", 0, now));
  CHECK_FALSE(said.is_new("waiting", 1, now));
  // The first may say it again.
  CHECK(said.is_new("waiting", 0, now));
  CHECK(said.is_new("stopping", 1, now));
  CHECK_FALSE(said.is_new("stopping", 0, now));
  // Only the last texts are remembered.
  for (int i = 0; i < 300; ++i) CHECK(said.is_new(std::to_string(i), 0, now));
  CHECK(said.is_new("waiting", 1, now));
}

TEST_CASE("summary: what happens to another host later is said again", "[remote]") {
  const acc::RunningClock::time_point now;
  RepeatFilter said;
  CHECK(said.is_new("a log file cannot be written", 0, now));
  CHECK_FALSE(said.is_new("a log file cannot be written", 1, now + std::chrono::seconds(1)));
  CHECK(said.is_new("a log file cannot be written", 2, now + std::chrono::seconds(6)));
}

TEST_CASE("summary: output that is lost is told by each host", "[remote]") {
  const acc::RunningClock::time_point now;
  RepeatFilter said;
  const std::string lost = acc::launcher::lost_output_text(290, "No space left on device");
  CHECK(said.is_new(lost, 0, now));
  CHECK(said.is_new(lost, 1, now));
}

}  // namespace summary_test
