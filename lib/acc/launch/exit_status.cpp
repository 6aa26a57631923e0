// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/exit_status.hpp"

#include <string.h>
#include <sys/wait.h>

namespace acc::launcher {

ExitStatus to_exit_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return Signaled{WTERMSIG(wait_status), WCOREDUMP(wait_status) != 0};
  return Exited{WEXITSTATUS(wait_status)};
}

bool succeeded(const ExitStatus& status) {
  return status == ExitStatus(Exited{0});
}

int shell_code(const ExitStatus& status) {
  if (const auto* signaled = std::get_if<Signaled>(&status)) return 128 + signaled->signal;
  return std::get<Exited>(status).code;
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string to_string(const ExitStatus& status) {
  if (const auto* signaled = std::get_if<Signaled>(&status)) {
    return "signal " + std::to_string(signaled->signal) + " (" + signal_name(signaled->signal) +
           (signaled->core_dumped ? ", core dumped)" : ")");
  }
  return "exit code " + std::to_string(std::get<Exited>(status).code);
}

}  // namespace acc::launcher
