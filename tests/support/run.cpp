// SPDX-License-Identifier: Apache-2.0
#include "support/run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"

namespace acc::test {
namespace {

struct Pipe {
  std::array<int, 2> end = {-1, -1};
  Pipe() {
    if (::pipe2(end.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(std::size_t i) {
    if (end[i] >= 0) ::close(end[i]);
    end[i] = -1;
  }
};

// Reads both streams and writes the input in turns, so that no side blocks on a full pipe.
void exchange(Pipe& in, Pipe& out, Pipe& err, std::string input, Run& result) {
  std::array<pollfd, 3> fds = {pollfd{out.end[0], POLLIN, 0}, pollfd{err.end[0], POLLIN, 0},
                               pollfd{in.end[1], POLLOUT, 0}};
  if (input.empty()) {
    in.close_end(1);
    fds[2].fd = -1;
  }
  std::array<char, 65536> buffer = {};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      const ssize_t n = ::read(fds[i].fd, buffer.data(), buffer.size());
      if (n > 0) {
        (i == 0 ? result.out : result.err).append(buffer.data(), static_cast<std::size_t>(n));
      } else {
        fds[i].fd = -1;
      }
    }
    if (fds[2].fd >= 0 && fds[2].revents != 0) {
      const ssize_t n = ::write(fds[2].fd, input.data(), input.size());
      input.erase(0, n > 0 ? static_cast<std::size_t>(n) : input.size());
      if (input.empty()) {
        in.close_end(1);
        fds[2].fd = -1;
      }
    }
  }
}

}  // namespace

Run run(const std::vector<std::string>& command, const Environment& environment, const std::string& input,
        const std::string& folder) {
  ::signal(SIGPIPE, SIG_IGN);
  std::string program = command.front();
  if (program.find('/') == std::string::npos) program = (program_folder() / program).string();
  std::vector<std::string> words = command;
  std::vector<std::string> variables = environment.to_strings();
  const std::vector<char*> argv = pointers_to(words);
  const std::vector<char*> envp = pointers_to(variables);
  Pipe in;
  Pipe out;
  Pipe err;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(in.end[0], 0);
    ::dup2(out.end[1], 1);
    ::dup2(err.end[1], 2);
    ::signal(SIGPIPE, SIG_DFL);
    if (::chdir(folder.c_str()) == 0) ::execve(program.c_str(), argv.data(), envp.data());
    ::_exit(127);
  }
  if (pid < 0) throw std::runtime_error("fork failed");
  in.close_end(0);
  out.close_end(1);
  err.close_end(1);
  Run result;
  exchange(in, out, err, input, result);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
  }
  result.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

Environment clean_environment(const std::string& home) {
  const Environment ours = Environment::of_process();
  Environment environment{{"HOME", home}, {"LANG", "C.UTF-8"}, {"PATH", ours.get("PATH", "/usr/bin:/bin")}};
  // The preloaded ones: of scripts/flakes.
  for (const char* name :
       {"TMPDIR", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "ONEDNN_MAX_CPU_ISA",
        "LD_PRELOAD", "ACC_DELAYS_SEED", "ACC_DELAYS_PROGRAMS", "SHIFTED_CLOCK", "SHIFTED_CLOCK_PERIOD"}) {
    if (const auto value = ours.find(name)) environment.set(name, *value);
  }
  return environment;
}

}  // namespace acc::test
