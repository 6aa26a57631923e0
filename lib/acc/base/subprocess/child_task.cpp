// SPDX-License-Identifier: Apache-2.0
#include "acc/base/subprocess/child_task.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>

#include "acc/base/blocked_signals.hpp"

namespace acc {
namespace {

// The child has a copy of our event loop, whose descriptors are ours: nothing may touch it there.
[[noreturn]] void be_child(pid_t parent, int to, const std::function<void(int)>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  ::dup2(to, STDIN_FILENO);
  ::syscall(SYS_close_range, STDERR_FILENO + 1U, ~0U, 0U);
  sigset_t none = {};
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  try {
    work(STDIN_FILENO);
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

bool run_in_child(Descriptor to, const std::function<void(int to)>& work) {
  const BlockedSignals blocked;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) be_child(parent, to.get(), work);
  return pid > 0;
}

}  // namespace acc
