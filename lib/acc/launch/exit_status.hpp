// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

namespace acc::launcher {

/// A process that ended by itself.
struct Exited {
  int code = 0;
  bool operator==(const Exited&) const = default;
};

/// A process that a signal ended.
struct Signaled {
  int signal = 0;
  bool core_dumped = false;
  bool operator==(const Signaled&) const = default;
};

using ExitStatus = std::variant<Exited, Signaled>;

/// What waitpid filled in, as a value.
ExitStatus to_exit_status(int wait_status);

bool succeeded(const ExitStatus& status);

/// The exit code as a shell gives it: the process's own, or 128 + signal.
int shell_code(const ExitStatus& status);

/// `SIGTERM`; `signal 40` for one without a name.
std::string signal_name(int signal);

/// `exit code 5`, or `signal 11 (SIGSEGV, core dumped)`.
std::string to_string(const ExitStatus& status);

}  // namespace acc::launcher
