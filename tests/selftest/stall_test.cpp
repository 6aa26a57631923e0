// SPDX-License-Identifier: Apache-2.0
#include "stall.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <vector>

#include "support/catch.hpp"

using acc::selftest::explain_stall;
using acc::selftest::Standing;
using acc::selftest::Watchdog;

namespace {

Standing waiting(int rank, int step = 3) {
  return {.rank = rank, .pid = 100 + rank, .step = step, .state = 'S'};
}

}  // namespace

TEST_CASE("stall: who has not begun, is stopped, gone or behind is named", "[selftest]") {
  std::vector<Standing> ranks = {waiting(0), waiting(1), waiting(2)};
  ranks[1] = {.rank = 1};
  CHECK(explain_stall(ranks, 3) == "rank 1 has not begun");
  ranks[1] = waiting(1);
  ranks[1].state = 'T';
  CHECK(explain_stall(ranks, 3) == "rank 1 (process 101) is stopped");
  ranks[1].state = 0;
  ranks[2].state = 'Z';
  CHECK(explain_stall(ranks, 3) == "rank 1 (process 101) is gone, rank 2 (process 102) is gone");
  ranks = {waiting(0), waiting(1), waiting(2, 2)};
  CHECK(explain_stall(ranks, 3) == "rank 2 (process 102) does not come");
}

TEST_CASE("stall: where nobody is missing it is the network, or another machine", "[selftest]") {
  const std::vector<Standing> ranks = {waiting(0), waiting(1)};
  CHECK(explain_stall(ranks, 2) ==
        "all ranks are there and wait: they do not reach each other through the network");
  CHECK(explain_stall(ranks, 4).starts_with("every rank of this machine is there"));
  CHECK(explain_stall({}, 4).starts_with("every rank of this machine is there"));
}

TEST_CASE("stall: a process's state is the kernel's", "[selftest]") {
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

TEST_CASE("watchdog: it barks when nobody has come in time", "[selftest]") {
  std::promise<void> barked;
  const Watchdog watchdog(std::chrono::milliseconds(1), [&] { barked.set_value(); });
  CHECK(barked.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready);
}

TEST_CASE("watchdog: it is silent where the time begins anew, or the work is over", "[selftest]") {
  bool barked = false;
  {
    Watchdog watchdog(std::chrono::hours(1), [&] { barked = true; });
    watchdog.restart();
  }
  CHECK_FALSE(barked);
}
