// SPDX-License-Identifier: Apache-2.0
#include "acc/control/tool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "acc/base/descriptor.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string find_in_path(const std::string& program, const Environment& environment) {
  for (const std::string& folder : split(environment.get("PATH", "/usr/bin:/bin"), ':')) {
    const fs::path file = fs::path(folder) / program;
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// 0: it cannot be started.
pid_t start(const std::string& program, std::vector<std::string> command, const Environment& environment,
            int output) {
  std::vector<std::string> variables = environment.to_strings();
  posix_spawn_file_actions_t streams;
  ::posix_spawn_file_actions_init(&streams);
  ::posix_spawn_file_actions_addopen(&streams, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&streams, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&streams, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, program.c_str(), &streams, &attributes, pointers_to(command).data(),
                                  pointers_to(variables).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&streams);
  return error == 0 ? pid : 0;
}

// False: the time is over.
bool read_all(int fd, Clock::time_point deadline, std::size_t most, std::string& text) {
  std::array<char, 1U << 14U> buffer;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
    const int seen = left > 0 ? ::poll(&ready, 1, static_cast<int>(left)) : 0;
    if (seen == 0) return false;
    if (seen < 0) continue;
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n == 0 || (n < 0 && errno != EINTR)) return true;
    if (n > 0)
      text.append(buffer.data(), std::min<std::size_t>(static_cast<std::size_t>(n), most - text.size()));
  }
}

}  // namespace

bool has_tool(const std::string& program, const Environment& environment) {
  return !find_in_path(program, environment).empty();
}

std::optional<ToolOutput> run_tool(const std::vector<std::string>& command, const Environment& environment,
                                   const ToolLimits& limits) {
  const std::string program = find_in_path(command.front(), environment);
  int ends[2] = {-1, -1};
  if (program.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  const pid_t pid = start(program, command, environment, theirs.get());
  theirs.reset();
  if (pid == 0) return std::nullopt;
  ToolOutput output;
  output.timed_out = !read_all(ours.get(), Clock::now() + limits.time, limits.bytes, output.text);
  ::kill(-pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return output;
}

}  // namespace acc
