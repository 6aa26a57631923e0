// SPDX-License-Identifier: Apache-2.0
#include "support/hang_report.hpp"

#include <execinfo.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace acc::test {
namespace {

constexpr const char* kShowProcesses = R"sh(show() {
  echo "$1 $(tr '\0' ' ' <"/proc/$1/cmdline" | cut -c1-200)"
  for thread in /proc/"$1"/task/*; do
    echo "  ${thread##*/} $(cat "$thread/wchan") $(cat "$thread/syscall")"
  done
  for child in $(cat /proc/"$1"/task/*/children); do
    if [ "$child" != $$ ]; then show "$child"; fi
  done
}
show "$PPID")sh";

// In a signal handler: nothing allocates.
void show_processes(int /*signal*/) {
  std::array<void*, 64> frames = {};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  ::backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
  const pid_t shell = ::fork();
  if (shell == 0) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", kShowProcesses, nullptr);
    ::_exit(127);
  }
  ::waitpid(shell, nullptr, 0);
}

}  // namespace

void report_hang() {
  const char* seconds = std::getenv("ACC_TEST_SECONDS");
  if (seconds == nullptr) return;
  std::array<void*, 1> frame = {};
  ::backtrace(frame.data(), 1);  // loads the library that it needs
  struct sigaction action = {};
  action.sa_handler = show_processes;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  ::alarm(static_cast<unsigned>(std::atoi(seconds)));
  ::unsetenv("ACC_TEST_SECONDS");  // jobs have a clean environment
}

}  // namespace acc::test
