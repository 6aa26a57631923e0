// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/aside.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>

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

bool run_aside(Descriptor to, const std::function<void(int to)>& work) {
  sigset_t all = {};
  sigset_t before = {};
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) be_child(parent, to.get(), work);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return pid > 0;
}

}  // namespace acc
