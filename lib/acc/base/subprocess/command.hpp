// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// The file that a shell would execute for `program`: itself when it has a slash, else the first executable
/// of that name on the PATH of `environment`. Empty: there is none.
std::filesystem::path find_program(std::string_view program, const Environment& environment);

/// argv or envp as execve takes it: a pointer to each word, then null. It holds while `words` is left alone.
std::vector<char*> pointers_to(std::vector<std::string>& words);

/// What a command may cost.
struct CommandLimits {
  std::chrono::milliseconds time = std::chrono::seconds(30);
  std::size_t bytes = std::size_t{256} << 10U;
};

/// What a command wrote to its standard output and standard error.
struct CommandOutput {
  std::string text = {};
  /// It took longer than it may, and was killed.
  bool timed_out = false;
};

/// Runs a command with /dev/null as its input and waits until its output ends. Absent: it cannot be started.
/// Bytes beyond the limit are left out. What it started and left in its process group is killed with it.
std::optional<CommandOutput> run_command(const std::vector<std::string>& command,
                                         const Environment& environment, const CommandLimits& limits);

/// Runs `work` in a child process, while we go on. The child has default signal dispositions and, beside
/// standard error, no descriptor but `to`, whose other end shows what it writes and when it ends; it is
/// killed when we end. Nobody waits for it here: whoever reaps this process's children reaps it too. For a
/// process without other threads. False: the system has no room for another process.
bool run_in_child(Descriptor to, const std::function<void(int to)>& work);

}  // namespace acc
