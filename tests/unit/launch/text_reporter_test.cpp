// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/text_reporter.hpp"

#include <csignal>
#include <string>

#include "support/catch.hpp"

namespace text_reporter_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

std::string text_of(const Event& event) {
  std::string text;
  TextReporter([&](log::Level level, std::string_view lines) {
    if (level >= log::Level::info) text += lines;
  }).report(event);
  return text;
}

log::Level level_of(const Event& event) {
  log::Level level = log::Level::off;
  TextReporter([&](log::Level one, std::string_view) { level = one; }).report(event);
  return level;
}

WorkerFailure failure() {
  return {.rank = 1, .local_rank = 1, .pid = 12, .host = "h", .status = Exited{5}};
}

}  // namespace

TEST_CASE("text_reporter: prints nothing for a successful job", "[launch]") {
  CHECK(text_of(AttemptStarted{}) == "");
  CHECK(text_of(WorkerStarted{}) == "");
  CHECK(text_of(WorkerFinished{}) == "");
  CHECK(text_of(Finished{}) == "");
  CHECK(text_of(Suspended{}) == "");
  CHECK(text_of(Resumed{}) == "");
}

TEST_CASE("text_reporter: the level of an event follows its importance", "[launch]") {
  CHECK(level_of(WorkerStarted{}) == log::Level::debug);
  CHECK(level_of(WorkerFinished{}) == log::Level::debug);
  CHECK(level_of(WaitingForNodes{"for node b"}) == log::Level::info);
  CHECK(level_of(Stopping{SIGINT, 4, 1500ms}) == log::Level::info);
  CHECK(level_of(Warning{"a full disk"}) == log::Level::warn);
  CHECK(level_of(Restarting{failure(), 1, 3}) == log::Level::warn);
  CHECK(level_of(Failed{"no such host", 75}) == log::Level::error);
  CHECK(level_of(Finished{{.first_failure = failure()}}) == log::Level::error);
}

TEST_CASE("text_reporter: a failure of acc itself", "[launch]") {
  CHECK(text_of(Failed{"no such host", 75}) == "acc: no such host\n");
}

TEST_CASE("text_reporter: one line for a signal", "[launch]") {
  CHECK(text_of(Stopping{SIGINT, 4, 1500ms}) == "acc: SIGINT received, stopping 4 workers (grace 1.5 s)\n");
  CHECK(text_of(Stopping{SIGTERM, 0, 30s}) == "acc: SIGTERM received, ending\n");
  CHECK(text_of(Stopping{SIGPIPE, 1, 30s}) ==
        "acc: the reader of its output is gone, stopping 1 worker (grace 30 s)\n");
  CHECK(text_of(Stopping{SIGPIPE, 0, 30s}) == "acc: the reader of its output is gone\n");
}

TEST_CASE("text_reporter: a notice names whom it reached, and whom it did not", "[launch]") {
  CHECK(text_of(SignalPassedOn{SIGUSR1, "", {0, 1}, {}}) ==
        "acc: SIGUSR1 received, the job is to end soon; passed on to ranks 0, 1\n");
  CHECK(text_of(SignalPassedOn{SIGUSR2, "node1", {0}, {1}}) ==
        "acc: SIGUSR2 received by node node1, the job is to end soon; passed on to rank 0; rank 1 has no "
        "handler "
        "for it and was left alone\n");
  CHECK(text_of(SignalPassedOn{SIGUSR1, "", {}, {}}) == "acc: SIGUSR1 received, the job is to end soon\n");
}

TEST_CASE("text_reporter: a requeue is said instead of a failure that follows from it", "[launch]") {
  LaunchReport report = {.preempted = true};
  const std::string requeue =
      "acc: the job was preempted and ended in time; exit code 75 asks for its requeue\n";
  CHECK(text_of(Finished{report}) == requeue);
  report.first_failure = failure();
  CHECK(text_of(Finished{report}).starts_with("acc: rank 1 (local rank 1, pid 12) on host h failed"));
  report.first_failure->stderr_tail = "RuntimeError: Connection closed by peer [10.0.0.2]:4242\n";
  CHECK(text_of(Finished{report}) == requeue);
}

TEST_CASE("text_reporter: names the ranks that had to be killed", "[launch]") {
  CHECK(text_of(Killed{{1, 3}, 30s, false}) == "acc: ranks 1, 3 did not end within 30 s and were killed\n");
  CHECK(text_of(Killed{{1}, 30s, true}) == "acc: second signal: rank 1 was killed\n");
}

TEST_CASE("text_reporter: a restart names rank, cause and count", "[launch]") {
  CHECK(text_of(Restarting{failure(), 1, 3}) ==
        "acc: rank 1 (local rank 1, pid 12) on host h failed with exit code 5; restart 1 of 3\n");
}

TEST_CASE("text_reporter: a failed job is one block and one line for the others", "[launch]") {
  const std::string text =
      text_of(Finished{{.exit_code = 5, .first_failure = failure(), .stopped_ranks = {0, 2, 3}}});
  CHECK(text.starts_with("acc: rank 1 "));
  CHECK(text.ends_with("  3 other workers were stopped: ranks 0, 2, 3\n"));
  CHECK(text_of(Finished{{.first_failure = failure(), .stopped_ranks = {0}}})
            .ends_with("  1 other worker was stopped: rank 0\n"));
}

TEST_CASE("text_reporter: a lost connection begins with where, and who had ended before", "[launch]") {
  LaunchReport report = {.first_failure = failure(), .ended_ranks = {0, 2}};
  const auto second_line = [&] {
    const std::string text = text_of(Finished{report});
    const std::size_t begin = text.find('\n') + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  CHECK(second_line().starts_with("  time: "));
  const std::string message = "RuntimeError: Connection closed by peer [10.0.0.2]:4242\n";
  report.first_failure->stderr_tail = message;
  CHECK(second_line() == "  ranks 0, 2 had ended before, with exit code 0");
  report.first_failure->stderr_tail =
      "[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"/home/me/train.py\", line 5, in <module>\n"
      "[rank1]:     dist.all_reduce(x)\n"
      "[rank1]:   File \"/env/lib/python3.11/site-packages/torch/distributed/c10d_logger.py\", line 83, in "
      "wrapper\n"
      "[rank1]:   File \"/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py\", line "
      "3075, in "
      "all_reduce\n[rank1]: " +
      message;
  CHECK(second_line() ==
        "  rank 1 lost its connection in all_reduce at train.py:5; ranks 0, 2 had ended before, with exit "
        "code 0");
  report.ended_ranks.clear();
  CHECK(second_line() == "  rank 1 lost its connection in all_reduce at train.py:5");
}

TEST_CASE("text_reporter: warnings", "[launch]") {
  CHECK(text_of(Warning{"the disk is full"}) == "acc: warning: the disk is full\n");
}

TEST_CASE("text_reporter: a rank that is slow, where, and beside what", "[launch]") {
  SlowSection slow{.section = acc::Section::data, .spent = 31ms, .reference = 26ms, .duration = 40s};
  CHECK(text_of(StragglerFound{.rank = 5, .slow = slow}) ==
        "acc: warning: rank 5 has been 19 % slower in data for 40 s (31 ms a step, the median is 26 ms)\n");
  slow = {.section = acc::Section::other, .spent = 1500ms, .duration = 6400ms};
  CHECK(text_of(StragglerFound{.rank = 1, .other = 0, .slow = slow}) ==
        "acc: warning: rank 1 has been slower outside of all sections for 6.4 s (1.5 s a step, rank 0 takes "
        "0 ms)\n");
  slow = {.section = acc::Section::data, .spent = 31ms, .reference = 26ms, .duration = 40s};
  CHECK(
      text_of(StragglerFound{.rank = 5, .slow = slow, .host = "b"}) ==
      "acc: warning: rank 5 on host b has been 19 % slower in data for 40 s (31 ms a step, the median is 26 "
      "ms)\n");
}

TEST_CASE("text_reporter: a hang shows the states of the ranks and what follows", "[launch]") {
  CHECK(text_of(HangFound{.idle = 61234ms, .rank_states = "rank 0: asleep\n"}) ==
        "acc: no rank has written anything or used the CPU for 61.2 s; where they stand:\n"
        "rank 0: asleep\n"
        "acc: the job goes on (--on-hang); their stacks:\n");
  CHECK(text_of(HangFound{.idle = 5s, .action = OnHang::kill, .watch = ActivityKind::output}) ==
        "acc: no rank has written anything for 5 s; where they stand:\n"
        "acc: the job is stopped (--on-hang) after their stacks:\n");
  CHECK(text_of(HangFound{.idle = 5s, .watch = ActivityKind::progress}) ==
        "acc: no rank has made progress for 5 s; where they stand:\n"
        "acc: the job goes on (--on-hang); their stacks:\n");
  CHECK(text_of(HangStacksFound{"rank 0: wait\n"}) == "rank 0: wait\n");
  CHECK(text_of(Restarting{{}, 1, 3}) == "acc: the job hung; restart 1 of 3\n");
  CHECK(text_of(Finished{{.exit_code = kHungCode, .hung = true}}) ==
        "acc: the job hung and was stopped (exit code 124)\n");
}

TEST_CASE("text_reporter: the table of the preflight, as a warning if something was found", "[launch]") {
  CHECK(text_of(PreflightFinished{{.text = "preflight of 2 nodes\n"}}) == "acc: preflight of 2 nodes\n");
  CHECK(text_of(PreflightFinished{{.passed = false}}).empty());
  CHECK(level_of(PreflightFinished{{.text = "table\n"}}) == log::Level::info);
  CHECK(level_of(PreflightFinished{{.clean = false, .text = "table\n"}}) == log::Level::warn);
}

TEST_CASE("text_reporter: where the state in memory is, or why it is not on the disk", "[launch]") {
  CHECK(text_of(StateFlushing{}) == "acc: the newest state in memory is being copied to the disk\n");
  const StateFlushed copied = {{.folder = "/runs/checkpoint-9"}};
  CHECK(text_of(copied) == "acc: the newest state in memory is on the disk: /runs/checkpoint-9\n");
  CHECK(level_of(copied) == log::Level::info);
  const StateFlushed older = {{.folder = "/runs/checkpoint-9", .damaged = {"snapshot_12: f: is missing"}}};
  CHECK(text_of(older) ==
        "acc: warning: a state in memory is damaged: snapshot_12: f: is missing\n"
        "acc: the newest state in memory is on the disk: /runs/checkpoint-9\n");
  CHECK(level_of(older) == log::Level::warn);
  const StateFlushed failed = {
      {.folder = "/runs/checkpoint-9", .problem = "/runs/checkpoint-9: exists already"}};
  CHECK(text_of(failed) ==
        "acc: the newest state in memory could not be put on the disk: /runs/checkpoint-9: exists already\n");
  CHECK(level_of(failed) == log::Level::error);
}

}  // namespace text_reporter_test
