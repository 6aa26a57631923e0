// SPDX-License-Identifier: Apache-2.0
#include "acc/base/subprocess/command.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect_pipe.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/writable_pipe.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <string>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/base/stat_line.hpp"
#include "acc/base/subprocess/process_launcher.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using boost::system::error_code;

// Reads until EOF or the time limit.
CommandOutput read_output(asio::io_context& loop, asio::readable_pipe& from, const CommandLimits& limits) {
  CommandOutput output;
  RunningTimer timer(loop, limits.time);
  timer.async_wait([&](error_code error) {
    if (error) return;
    output.timed_out = true;
    from.close();
  });
  std::array<char, std::size_t{16} << 10U> buffer;
  const std::function<void()> read = [&] {
    from.async_read_some(asio::buffer(buffer), [&](error_code error, std::size_t size) {
      output.text.append(buffer.data(), std::min(size, limits.bytes - output.text.size()));
      if (error) {
        timer.cancel();
      } else {
        read();
      }
    });
  };
  read();
  loop.run();
  return output;
}

}  // namespace

fs::path find_program(std::string_view program, const Environment& environment) {
  if (program.find('/') != std::string_view::npos) return program;
  for (const std::string& folder : split(environment.get("PATH", "/usr/bin:/bin"), ':')) {
    const fs::path file = fs::path(folder) / program;
    std::error_code ignored;
    if (!folder.empty() && fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0)
      return file;
  }
  return {};
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.data()));
  pointers.push_back(nullptr);
  return pointers;
}

std::optional<CommandOutput> run_command(const std::vector<std::string>& command,
                                         const Environment& environment, const CommandLimits& limits) {
  const fs::path program = find_program(command.front(), environment);
  if (program.empty()) return std::nullopt;
  try {
    asio::io_context loop(1);
    asio::readable_pipe ours(loop);
    asio::writable_pipe theirs(loop);
    asio::connect_pipe(ours, theirs);
    const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const ProcessLauncher launcher = {.environment = environment,
                                      .in = nothing.get(),
                                      .out = theirs.native_handle(),
                                      .err = theirs.native_handle(),
                                      .grouping = ProcessGrouping::group};
    const Process process = launcher(loop.get_executor(), program, command);
    theirs.close();
    CommandOutput output = read_output(loop, ours, limits);
    // Before the process is reaped: until then the pid cannot be reused for another group.
    ::kill(-process.id(), SIGKILL);
    return output;
  } catch (const Error&) {
    return std::nullopt;
  } catch (const boost::system::system_error&) {  // no descriptors are left
    return std::nullopt;
  }
}

namespace {

// The child must not touch its copy of the event loop, which shares our descriptors.
[[noreturn]] void be_child(pid_t parent, int to, const std::function<void(int)>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  ::dup2(to, STDIN_FILENO);
  ::syscall(SYS_close_range, STDERR_FILENO + 1U, ~0U, 0U);
  sigset_t none = {};
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  try {
    work(STDIN_FILENO);
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

namespace {

// With their starts: a pid is used again.
std::map<pid_t, std::uint64_t>& asking_children() {
  static std::map<pid_t, std::uint64_t> children;
  return children;
}

}  // namespace

pid_t run_in_child(Descriptor to, const std::function<void(int to)>& work) {
  const BlockedSignals blocked;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) be_child(parent, to.get(), work);
  if (pid < 0) return 0;
  std::erase_if(asking_children(), [](const auto& child) { return !is_asking_child(child.first); });
  asking_children()[pid] = process_start(std::to_string(pid));
  return pid;
}

bool is_asking_child(pid_t pid) {
  const auto child = asking_children().find(pid);
  return child != asking_children().end() && child->second != 0 &&
         child->second == process_start(std::to_string(pid));
}

}  // namespace acc
