// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/guard.hpp"

#include <signal.h>

#include <algorithm>

#include "support/catch.hpp"

using namespace acc;

TEST_CASE("guard: the agent's end is the report", "[process]") {
  CHECK(guard([](int) { return 7; }).agent == ExitStatus(Exited{7}));
  const GuardReport killed = guard([](int) {
    ::raise(SIGKILL);
    return 0;
  });
  CHECK(killed.agent == ExitStatus(Signaled{SIGKILL}));
  CHECK_FALSE(killed.left_something);
}

TEST_CASE("guard: SIGHUP is handed on, unless it was ignored before", "[process]") {
  const auto hands_on = [](int signal) {
    const std::vector<int> signals = forwarded_signals();
    return std::find(signals.begin(), signals.end(), signal) != signals.end();
  };
  CHECK(hands_on(SIGHUP));
  ::signal(SIGHUP, SIG_IGN);
  CHECK_FALSE(hands_on(SIGHUP));
  CHECK(hands_on(SIGINT));
  CHECK_FALSE(hands_on(SIGXCPU));
  const std::vector<int> more = forwarded_signals({SIGXCPU, SIGHUP});
  CHECK(std::ranges::find(more, SIGXCPU) != more.end());
  CHECK(std::ranges::find(more, SIGHUP) == more.end());
  ::signal(SIGHUP, SIG_DFL);
}
