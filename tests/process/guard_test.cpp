// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/guard.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace guard_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("guard: reports the end of the agent", "[process]") {
  int cleaned = 0;
  const auto clean_up = [&] { ++cleaned; };
  CHECK(guard([](int) { return 7; }, clean_up).agent == ExitStatus(Exited{7}));
  const auto die = [](int) {
    ::raise(SIGKILL);
    return 0;
  };
  const GuardReport killed = guard(die, clean_up);
  CHECK(killed.agent == ExitStatus(Signaled{SIGKILL}));
  CHECK_FALSE(killed.left_something);
  CHECK(cleaned == 0);  // not here: the guardian did it
}

TEST_CASE("guard: descendants of the agent are killed before the cleanup", "[process]") {
  const test::TemporaryFolder folder;
  const auto file = folder.write("left", "");
  const auto leave = [](int) {
    if (::fork() == 0) {
      ::setsid();
      for (;;) ::pause();
    }
    ::raise(SIGKILL);
    return 0;
  };
  CHECK(guard(leave, [&] { std::filesystem::remove(file); }).left_something);
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("guard: without its guardian the agent is ended, and the supervisor cleans up", "[process]") {
  bool cleaned = false;
  const auto agent = [](int) {
    ::kill(::getppid(), SIGKILL);
    for (;;) ::pause();
    return 0;
  };
  const GuardReport report = guard(agent, [&] { cleaned = true; });
  CHECK(report.agent == ExitStatus(Signaled{SIGKILL}));
  CHECK(report.left_something);
  CHECK(cleaned);
}

TEST_CASE("guard: SIGHUP is forwarded, unless it was ignored before", "[process]") {
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

}  // namespace guard_test
