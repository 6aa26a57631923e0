// SPDX-License-Identifier: Apache-2.0
#include "acc/base/capture.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "acc/base/descriptor.hpp"

namespace acc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMost = 64U << 10U;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

// In a group of its own, so that what it starts can be killed with it.
std::optional<pid_t> start(std::vector<std::string> command, std::vector<std::string> environment, int out) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, command.front().c_str(), &actions, &attributes,
                                   pointers(command).data(), pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? std::optional(pid) : std::nullopt;
}

// Reads to the end of the stream; false when the time is up first.
bool read_until(int fd, Clock::time_point deadline, std::string& text) {
  std::array<char, 4096> buffer = {};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait = {.fd = fd, .events = POLLIN, .revents = 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) == 0) return false;
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    text.append(buffer.data(), std::min<std::size_t>(static_cast<std::size_t>(n), kMost - text.size()));
  }
}

}  // namespace

std::optional<std::string> output_of(const std::vector<std::string>& command, const Environment& environment,
                                     std::chrono::milliseconds limit) {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const auto pid = start(command, environment.to_strings(), write_end.get());
  write_end.reset();
  if (!pid) return std::nullopt;
  std::string text;
  const bool complete = read_until(read_end.get(), Clock::now() + limit, text);
  // Also when the stream ended but the command did not: nobody waits for it.
  ::kill(-*pid, SIGKILL);
  while (::waitpid(*pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return complete ? std::optional(text) : std::nullopt;
}

}  // namespace acc
