// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "acc/base/descriptor.hpp"
#include "acc/base/error.hpp"
#include "acc/launch/descendants.hpp"

namespace acc {
namespace {

[[noreturn]] void fail(const char* what) {
  throw Error({.kind = ErrorKind::system, .what = std::string(what) + ": " + std::strerror(errno)});
}

// Blocks what the front waits for, and gives the caller its mask back.
class WaitedSignals {
 public:
  explicit WaitedSignals(const std::vector<int>& signals) {
    ::sigemptyset(&set_);
    for (const int signal : signals) ::sigaddset(&set_, signal);
    ::sigaddset(&set_, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~WaitedSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  WaitedSignals(const WaitedSignals&) = delete;
  WaitedSignals& operator=(const WaitedSignals&) = delete;

  int wait() const {
    int signal = 0;
    return ::sigwait(&set_, &signal) == 0 ? signal : SIGCHLD;
  }

 private:
  sigset_t set_ = {};
  sigset_t before_ = {};
};

// Orphans of the agent's tree come to the front, not to init.
class Subreaper {
 public:
  Subreaper() {
    ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) fail("cannot adopt orphans");
  }
  ~Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, before_); }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

 private:
  int before_ = 0;
};

[[noreturn]] void run_agent(const std::function<int(int)>& agent, int front) {
  // A terminal's Ctrl-C reaches the front alone, and comes to us once.
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Not exit(): what the caller registered to run at its end must run once, in the caller.
  ::_exit(agent(front));
}

ExitStatus stand_in_front(pid_t agent, const WaitedSignals& signals) {
  for (;;) {
    const int signal = signals.wait();
    if (signal != SIGCHLD) {
      ::kill(agent, signal);
      continue;
    }
    int status = 0;
    if (::waitpid(agent, &status, WNOHANG) == agent) return to_exit_status(status);
  }
}

}  // namespace

std::vector<int> forwarded_signals(const std::set<int>& also) {
  std::set<int> signals = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};
  signals.insert(also.begin(), also.end());
  struct sigaction hangup = {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler == SIG_IGN) signals.erase(SIGHUP);
  return {signals.begin(), signals.end()};
}

GuardReport guard(const std::function<int(int front)>& agent, const std::set<int>& also) {
  const WaitedSignals signals(forwarded_signals(also));
  const Subreaper subreaper;
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("no pipe to the agent");
  Descriptor agents_end(ends[0]);
  Descriptor fronts_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) fail("the agent cannot be started");
  if (pid == 0) {
    fronts_end.reset();
    run_agent(agent, agents_end.get());
  }
  GuardReport report;
  report.agent = stand_in_front(pid, signals);
  report.left_something = kill_descendants();
  return report;
}

}  // namespace acc
