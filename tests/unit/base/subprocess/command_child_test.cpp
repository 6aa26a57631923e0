// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"
#include "support/catch.hpp"

namespace command_child_test {

using namespace acc;

namespace {

struct Pipe {
  Descriptor ours = {};
  Descriptor childs = {};
};

Pipe make_pipe() {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::string read_to_end(const Descriptor& from) {
  std::string text;
  char buffer[256];
  for (ssize_t n = 1; n > 0;) {
    n = ::read(from.get(), buffer, sizeof buffer);
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace

TEST_CASE("child task: its output and its end arrive", "[base]") {
  Pipe pipe = make_pipe();
  REQUIRE(run_in_child(std::move(pipe.childs),
                       [](int to) { write_all(to, "from " + std::to_string(::getppid())); }));
  CHECK(read_to_end(pipe.ours) == "from " + std::to_string(::getpid()));
  CHECK(::waitpid(-1, nullptr, 0) > 0);
}

TEST_CASE("child task: the child has default signals, and no descriptor but its output", "[base]") {
  Pipe pipe = make_pipe();
  const Pipe other = make_pipe();
  ::signal(SIGUSR1, SIG_IGN);
  run_in_child(std::move(pipe.childs), [fd = other.ours.get()](int to) {
    struct sigaction action = {};
    ::sigaction(SIGUSR1, nullptr, &action);
    const bool open = ::fcntl(fd, F_GETFD) >= 0;
    write_all(to,
              std::string(action.sa_handler == SIG_DFL ? "default" : "ours") + (open ? " open" : " closed"));
  });
  ::signal(SIGUSR1, SIG_DFL);
  CHECK(read_to_end(pipe.ours) == "default closed");
  ::waitpid(-1, nullptr, 0);
}

TEST_CASE("child task: a failing child ends", "[base]") {
  Pipe pipe = make_pipe();
  run_in_child(std::move(pipe.childs), [](int) { throw std::runtime_error("no"); });
  CHECK(read_to_end(pipe.ours).empty());
  int status = 0;
  ::waitpid(-1, &status, 0);
  CHECK(WEXITSTATUS(status) == 1);
}

}  // namespace command_child_test
