// SPDX-License-Identifier: Apache-2.0
#include "acc/base/subprocess/process_launcher.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/limit_hint.hpp"
#include "acc/base/subprocess/command.hpp"

namespace acc {
namespace {

// The data of the child between clone and exec. It runs in the parent's memory while the parent waits, and
// must not allocate.
struct ChildSetup {
  const ProcessLauncher& launcher;
  const char* program;
  char* const* arguments;
  char* const* environment;
  pid_t parent;
  /// The errno if it could not be executed.
  int error = 0;
};

// System calls, because the thread sanitizer's sigaction() records the handler in memory, which is the
// parent's here.
void set_disposition(int signal, unsigned long handler) {
  const struct {
    unsigned long handler;
    unsigned long flags = 0;
    unsigned long restorer = 0;
    unsigned long mask = 0;
  } action = {.handler = handler};
  ::syscall(SYS_rt_sigaction, signal, &action, nullptr, sizeof action.mask);
}

void reset_signals(const ProcessLauncher& launcher) {
  constexpr unsigned long kDefault = 0;  // SIG_DFL
  constexpr unsigned long kIgnore = 1;   // SIG_IGN
  if (launcher.signals_to_reset) {
    for (const int signal : *launcher.signals_to_reset) set_disposition(signal, kDefault);
  } else {
    for (int signal = 1; signal < NSIG; ++signal) set_disposition(signal, kDefault);
  }
  for (const int signal : launcher.ignored_signals) set_disposition(signal, kIgnore);
}

void set_grouping(ProcessGrouping grouping) {
  if (grouping == ProcessGrouping::session) {
    ::setsid();
    return;
  }
  ::setpgid(0, 0);
  // All signals are blocked here, so a background process may take the terminal.
  if (grouping == ProcessGrouping::foreground) ::tcsetpgrp(STDIN_FILENO, ::getpid());
}

bool prepare(const ProcessLauncher& launcher, pid_t parent) {
  reset_signals(launcher);
  ::prctl(PR_SET_PDEATHSIG, launcher.death_signal);
  // Otherwise Yama allows only the child's ancestors to attach a debugger.
  ::prctl(PR_SET_PTRACER, parent);
  // The parent may have died before PR_SET_PDEATHSIG was set; the signal would never be sent.
  if (::getppid() != parent) return false;
  if (launcher.in >= 0 && ::dup2(launcher.in, STDIN_FILENO) < 0) return false;
  if (launcher.out >= 0 && ::dup2(launcher.out, STDOUT_FILENO) < 0) return false;
  if (launcher.err >= 0 && ::dup2(launcher.err, STDERR_FILENO) < 0) return false;
  if (launcher.open_files) ::setrlimit(RLIMIT_NOFILE, &*launcher.open_files);
  if (launcher.before_exec && !launcher.before_exec()) return false;
  set_grouping(launcher.grouping);
  sigset_t none = {};
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  return true;
}

#if defined(__SANITIZE_THREAD__)
// The sanitizer's clone() assumes that every child has memory of its own, and would handle the fork twice.
extern "C" int __clone(int (*run)(void*), void* stack, int flags, void* given, ...);
constexpr auto kClone = __clone;
#else
constexpr auto kClone = ::clone;
#endif

#if defined(__SANITIZE_ADDRESS__)
// The last child left its stack by execve(), with the sanitizer's red zones around its variables.
extern "C" void __asan_unpoison_memory_region(void const volatile* begin, std::size_t size);
constexpr auto kUnpoison = __asan_unpoison_memory_region;
#else
constexpr auto kUnpoison = [](const void* /*begin*/, std::size_t /*size*/) {};
#endif

int run_child(void* given) {
  ChildSetup& setup = *static_cast<ChildSetup*>(given);
  if (prepare(setup.launcher, setup.parent)) {
    ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
    ::execve(setup.program, setup.arguments, setup.environment);
  }
  setup.error = errno;
  return 127;
}

struct Cloned {
  pid_t pid = -1;
  Descriptor pidfd = {};
};

Cloned clone_child(ChildSetup& setup) {
  static std::mutex one_child_at_a_time;
  alignas(16) static std::array<char, std::size_t{64} << 10U> stack;
  const std::scoped_lock lock(one_child_at_a_time);
  kUnpoison(stack.data(), stack.size());
  int pidfd = -1;
  // The parent's handlers must not run in the child before it has reset its dispositions.
  const BlockedSignals blocked;
  const pid_t pid = kClone(run_child, stack.data() + stack.size(),
                           CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &setup, &pidfd);
  if (pid < 0) setup.error = errno;
  return {pid, Descriptor(pidfd)};
}

// The program that a script names behind #!, as the kernel reads it; empty: the file is not such a script.
std::string interpreter_of(const std::filesystem::path& script) {
  std::array<char, 256> begin = {};
  const Descriptor file(::open(script.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const ssize_t size = ::read(file.get(), begin.data(), begin.size());
  const std::string_view text(begin.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  if (!text.starts_with("#!")) return "";
  const std::string_view line = text.substr(2, text.find('\n') - 2);
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(line.substr(first, line.find_first_of(" \t", first) - first));
}

// The kernel says of a script what is wrong with its interpreter.
[[noreturn]] void throw_start_error(const std::filesystem::path& program, int error_number) {
  const bool wrong_program = error_number == ENOENT || error_number == EACCES || error_number == ENOEXEC;
  std::string reason = std::strerror(error_number);
  std::string hint =
      error_number == ENOEXEC ? "a script needs a first line like #!/bin/sh" : limit_hint(error_number);
  const bool may_execute = ::access(program.c_str(), X_OK) == 0;
  std::string interpreter = wrong_program && may_execute ? interpreter_of(program) : "";
  if (interpreter.ends_with('\r')) {
    interpreter.pop_back();
    reason = "its first line names " + interpreter + " with a carriage return behind it";
    hint = "its lines end as on Windows: sed -i 's/\\r$//' " + program.string();
  } else if (!interpreter.empty()) {
    reason = "its interpreter " + interpreter + ": " + reason;
    hint = "its first line names it";
  }
  throw Error({.kind = wrong_program ? ErrorKind::usage : ErrorKind::system,
               .what = "cannot be started: " + reason,
               .where = program.string(),
               .hint = hint});
}

}  // namespace

std::vector<int> changed_signals() {
  std::vector<int> changed;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction now = {};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_DFL) changed.push_back(signal);
  }
  return changed;
}

rlimit raise_open_files() {
  rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit max = {.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &max);
  return before;
}

Process ProcessLauncher::operator()(const boost::asio::io_context::executor_type& executor,
                                    const std::filesystem::path& program,
                                    std::vector<std::string> arguments) const {
  const std::vector<char*> argv = pointers_to(arguments);
  const std::vector<char*> envp = pointers_to(environment.to_strings());
  ChildSetup setup = {.launcher = *this,
                      .program = program.c_str(),
                      .arguments = argv.data(),
                      .environment = envp.data(),
                      .parent = ::getpid()};
  Cloned child = clone_child(setup);
  if (child.pid > 0 && setup.error != 0) ::waitpid(child.pid, nullptr, 0);
  if (setup.error != 0) throw_start_error(program, setup.error);
  return Process(executor, child.pid, child.pidfd.release());
}

Process ProcessLauncher::fork(const boost::asio::io_context::executor_type& executor,
                              const std::function<int()>& run) const {
  const pid_t parent = ::getpid();
  // As in clone_child(); the child's mask is emptied by prepare().
  const BlockedSignals blocked;
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!prepare(*this, parent)) ::_exit(127);
    ::clearenv();
    for (const auto& [name, value] : environment.variables()) ::setenv(name.c_str(), value.c_str(), 1);
    ::_exit(run());
  }
  // Nobody else reaps it, so the pid is still its own.
  Descriptor pidfd(pid < 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    const int error_number = errno;
    if (pid > 0 && ::kill(pid, SIGKILL) == 0) ::waitpid(pid, nullptr, 0);
    throw Error({.kind = ErrorKind::system,
                 .what = std::string("this process cannot be forked: ") + std::strerror(error_number),
                 .hint = limit_hint(error_number)});
  }
  return Process(executor, pid, pidfd.release());
}

}  // namespace acc
