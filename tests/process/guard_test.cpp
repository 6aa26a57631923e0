// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "acc/control/process_table.hpp"
#include "support/catch.hpp"
#include "support/in_child.hpp"
#include "support/launched.hpp"
#include "support/read_all.hpp"
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

namespace {

// A process that waits, in a session of its own or in ours.
pid_t start_waiting(bool own_session) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  if (own_session) ::setsid();
  for (;;) ::pause();
}

bool runs(pid_t child) {
  return ::waitpid(child, nullptr, WNOHANG) == 0;
}

}  // namespace

TEST_CASE("guard: what a shell had started before it executed acc lives on", "[process]") {
  const bool guardian_dies = GENERATE(false, true);
  const auto agent = [&](int) {
    start_waiting(true);
    if (guardian_dies) ::kill(::getppid(), SIGKILL);
    while (guardian_dies) ::pause();
    return 0;
  };
  CHECK(test::in_child([&] {
          const std::vector<pid_t> before = {start_waiting(false), start_waiting(true)};
          const GuardReport report = guard(agent, [] {});
          const bool all_run = std::ranges::all_of(before, runs);
          for (const pid_t process : before) ::kill(process, SIGKILL);
          return report.left_something && all_run ? 0 : 1;
        }) == 0);
}

TEST_CASE("guard: a stopped guardian neither hides the end of the supervisor nor stays", "[process]") {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Descriptor answer(ends[0]);
  Descriptor peer_end(ends[1]);
  const auto agent = [&](int gone) {
    const pid_t guardian = ::getppid();
    const pid_t supervisor = read_process(guardian)->parent;
    ::kill(guardian, SIGSTOP);
    while (read_process(guardian)->state != 'T') ::sched_yield();
    ::kill(supervisor, SIGKILL);
    pollfd end = {.fd = gone, .events = POLLIN, .revents = 0};
    const bool noticed = ::poll(&end, 1, test::kTimeoutMs) == 1;
    return ::write(peer_end.get(), noticed ? "y" : "n", 1) == 1 ? 0 : 1;
  };
  test::in_child([&] { return guard(agent, [] {}).left_something; });
  peer_end.reset();
  // The pipe ends with the last of them.
  CHECK(test::read_all(answer.get()) == "y");
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

TEST_CASE("guard: SIGUSR1 is not forwarded if it was ignored before, unless it is asked for", "[process]") {
  ::signal(SIGUSR1, SIG_IGN);
  const std::vector<int> usual = forwarded_signals();
  const std::vector<int> asked = forwarded_signals({SIGUSR1});
  ::signal(SIGUSR1, SIG_DFL);
  CHECK(std::ranges::find(usual, SIGUSR1) == usual.end());
  CHECK(std::ranges::find(usual, SIGUSR2) != usual.end());
  CHECK(std::ranges::find(asked, SIGUSR1) != asked.end());
}

}  // namespace guard_test
