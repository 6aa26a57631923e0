// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/files.hpp"

namespace acc {

/// The file that a shell would execute for `program`: itself if it has a slash, else the first executable of
/// that name on the PATH of `environment`; empty if there is none.
std::filesystem::path find_program(std::string_view program, const Environment& environment);

/// argv or envp for execve: a pointer to each word, then null. Valid until `words` changes.
std::vector<char*> pointers_to(const std::vector<std::string>& words);
std::vector<char*> pointers_to(std::vector<std::string>&&) = delete;

/// Limits of a command.
struct CommandLimits {
  std::chrono::milliseconds time = std::chrono::seconds(30);
  std::size_t bytes = std::size_t{256} << 10U;
};

/// The standard output and standard error of a command.
struct CommandOutput {
  std::string text = {};
  /// It exceeded the time limit and was killed.
  bool timed_out = false;
};

/// Runs a command with /dev/null as its input and waits until its output ends. Absent if it cannot be
/// started. Output beyond the limit is dropped. Its process group is killed at the end.
std::optional<CommandOutput> run_command(const std::vector<std::string>& command,
                                         const Environment& environment, const CommandLimits& limits);

/// Runs `work` in a forked child. The child has default signal dispositions and no descriptors but standard
/// error and `to`, whose other end reads what it writes and notices its end; it is killed when this process
/// ends. It is not waited for here: the caller reaps it with its other children. Only for a process without
/// other threads. Returns its pid; 0 if fork fails.
pid_t run_in_child(Descriptor to, const std::function<void(int to)>& work);

/// Whether the process is a child of run_in_child() in this process. It may wait in the kernel, for a driver
/// or a disk, and then cannot be killed.
bool is_asking_child(pid_t pid);

}  // namespace acc
