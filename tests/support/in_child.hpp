// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>

#include "support/skip.hpp"  // kSkipped, which `work` returns where it cannot run

namespace acc::test {

/// Runs `work` in a forked process, which may change its namespaces and groups. Returns its exit code; 3 if
/// it threw.
inline int in_child(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    try {
      ::_exit(work());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(3);
    }
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace acc::test
