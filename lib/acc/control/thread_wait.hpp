// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace acc::launcher {

/// Where one thread stands, as the kernel sees it.
struct ThreadWait {
  pid_t id = 0;
  std::string name = {};
  /// As ProcessStat::state.
  char state = '?';
  /// The system call that it is in, empty when it is in none or may not be told.
  std::string call = {};
  /// The kernel function that it waits in, empty likewise.
  std::string kernel = {};
};

/// The threads of a process, its first one in front; empty when it has ended.
std::vector<ThreadWait> threads_of(pid_t pid, const std::filesystem::path& proc = "/proc");

/// `sleeping in futex (futex_wait_queue)`, `running`, `stopped`.
std::string to_string(const ThreadWait& thread);

/// The name of a system call that programs wait in, else its number.
std::string name_of_call(long number);

}  // namespace acc::launcher
