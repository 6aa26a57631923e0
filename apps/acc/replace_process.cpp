// SPDX-License-Identifier: Apache-2.0
#include "replace_process.hpp"

#include <cerrno>
#include <csignal>

namespace acc::launcher {

void replace_process(const char* program, char* const* words, char* const* environment) {
  ::signal(SIGXFSZ, SIG_DFL);
  ::execvpe(program, words, environment);
  const int error = errno;
  ::signal(SIGXFSZ, SIG_IGN);
  errno = error;
}

}  // namespace acc::launcher
