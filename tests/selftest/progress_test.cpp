// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <vector>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace progress_test {

using acc::selftest::ProgressBoard;

TEST_CASE("progress: processes see each other's steps", "[selftest]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("board", "");
  ProgressBoard board(file, 3);
  REQUIRE(board.shared());
  board.set_step(0, 4);
  ProgressBoard another(file, 3);
  another.set_step(2, 5);
  const auto progress = board.progress();
  REQUIRE(progress.size() == 3);
  CHECK(progress[0].pid == ::getpid());
  CHECK(progress[0].step == 4);
  CHECK(progress[1].pid == 0);
  CHECK(progress[2].step == 5);
}

TEST_CASE("progress: one process reports how the test failed", "[selftest]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.write("board", "");
  ProgressBoard board(file, 2);
  ProgressBoard another(file, 2);
  CHECK(another.claim_report());
  CHECK_FALSE(board.claim_report());
  CHECK_FALSE(another.claim_report());
}

TEST_CASE("progress: without a file nothing is shared, and the process reports for itself", "[selftest]") {
  ProgressBoard board({}, 2);
  board.set_step(0, 1);
  CHECK_FALSE(board.shared());
  CHECK(board.progress().empty());
  CHECK(board.claim_report());
  CHECK_FALSE(ProgressBoard("/nowhere/board", 2).shared());
}

TEST_CASE("progress: a rank beyond the size is ignored", "[selftest]") {
  const acc::test::TemporaryFolder folder;
  ProgressBoard board(folder.write("board", ""), 1);
  board.set_step(7, 1);
  CHECK(board.progress().size() == 1);
  CHECK(board.progress()[0].pid == 0);
}

using acc::selftest::explain_stall;
using acc::selftest::RankProgress;
using acc::selftest::Watchdog;

namespace {

RankProgress waiting(int rank, int step = 3) {
  return {.rank = rank, .pid = 100 + rank, .step = step, .state = 'S'};
}

}  // namespace

TEST_CASE("progress: ranks that have not begun, are stopped, gone or behind are named", "[selftest]") {
  std::vector<RankProgress> ranks = {waiting(0), waiting(1), waiting(2)};
  ranks[1] = {.rank = 1};
  CHECK(explain_stall(ranks, 3) == "rank 1 has not begun");
  ranks[1] = waiting(1);
  ranks[1].state = 'T';
  CHECK(explain_stall(ranks, 3) == "rank 1 (process 101) is stopped");
  ranks[1].state = 0;
  ranks[2].state = 'Z';
  CHECK(explain_stall(ranks, 3) == "rank 1 (process 101) is gone, rank 2 (process 102) is gone");
  ranks = {waiting(0), waiting(1), waiting(2, 2)};
  CHECK(explain_stall(ranks, 3) == "rank 2 (process 102) has not arrived");
}

TEST_CASE("progress: where no rank is missing the network or another machine is named", "[selftest]") {
  const std::vector<RankProgress> ranks = {waiting(0), waiting(1)};
  CHECK(explain_stall(ranks, 2) ==
        "all ranks are running and wait: they cannot reach each other through the network");
  CHECK(explain_stall(ranks, 4).starts_with("every rank of this machine is running"));
  CHECK(explain_stall({}, 4).starts_with("every rank of this machine is running"));
}

TEST_CASE("progress: a process's state is that of /proc", "[selftest]") {
  CHECK(acc::selftest::process_state(::getpid()) == 'R');
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, WUNTRACED);
  CHECK(acc::selftest::process_state(child) == 'T');
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(acc::selftest::process_state(child) == '\0');
}

TEST_CASE("watchdog: it expires when it is not restarted in time", "[selftest]") {
  std::promise<void> expired;
  const Watchdog watchdog(std::chrono::milliseconds(1), [&] { expired.set_value(); });
  CHECK(expired.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready);
}

TEST_CASE("watchdog: it does not expire after a restart or its end", "[selftest]") {
  bool expired = false;
  {
    Watchdog watchdog(std::chrono::hours(1), [&] { expired = true; });
    watchdog.restart();
  }
  CHECK_FALSE(expired);
}

}  // namespace progress_test
