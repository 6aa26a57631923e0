// SPDX-License-Identifier: Apache-2.0
#include "acc/base/subprocess/process_launcher.hpp"

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
#include <utility>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"

namespace acc {
namespace {

// What the child needs between clone and exec. It runs in our memory while we wait, so nothing there may
// allocate.
struct ChildSetup {
  const ProcessLauncher& launcher;
  const char* program;
  char* const* arguments;
  char* const* environment;
  pid_t parent;
  /// Why it could not be executed.
  int error = 0;
};

// By system calls: the thread sanitizer's sigaction() keeps what it was asked in memory, which is the
// parent's here.
void reset_signals() {
  struct {
    unsigned long handler = 0;  // SIG_DFL
    unsigned long flags = 0;
    unsigned long restorer = 0;
    unsigned long mask = 0;
  } const standard;
  for (int signal = 1; signal < NSIG; ++signal)
    ::syscall(SYS_rt_sigaction, signal, &standard, nullptr, sizeof standard.mask);
}

void take_place(ProcessPlace place) {
  if (place == ProcessPlace::session) {
    ::setsid();
    return;
  }
  ::setpgid(0, 0);
  // All signals are blocked here: a process in the background may take the terminal.
  if (place == ProcessPlace::foreground) ::tcsetpgrp(STDIN_FILENO, ::getpid());
}

bool prepare(const ChildSetup& setup) {
  const ProcessLauncher& launcher = setup.launcher;
  reset_signals();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Yama otherwise refuses debuggers that are not the child's ancestors.
  ::prctl(PR_SET_PTRACER, setup.parent);
  // The parent may have died before PR_SET_PDEATHSIG: then nobody would ever send that signal.
  if (::getppid() != setup.parent) return false;
  if (launcher.in >= 0 && ::dup2(launcher.in, STDIN_FILENO) < 0) return false;
  if (launcher.out >= 0 && ::dup2(launcher.out, STDOUT_FILENO) < 0) return false;
  if (launcher.err >= 0 && ::dup2(launcher.err, STDERR_FILENO) < 0) return false;
  if (launcher.open_files) ::setrlimit(RLIMIT_NOFILE, &*launcher.open_files);
  if (launcher.before_exec && !launcher.before_exec()) return false;
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  take_place(launcher.place);
  sigset_t none = {};
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  return true;
}

#if defined(__SANITIZE_THREAD__)
// Its clone() takes every child for one with memory of its own, and counts what happens at a fork twice.
extern "C" int __clone(int (*run)(void*), void* stack, int flags, void* given, ...);
constexpr auto clone_process = __clone;
#else
constexpr auto clone_process = ::clone;
#endif

#if defined(__SANITIZE_ADDRESS__)
// Its marks around the variables of the last child are still on the stack, which that child left by execve().
extern "C" void __asan_unpoison_memory_region(void const volatile* begin, std::size_t size);
constexpr auto clean_stack = __asan_unpoison_memory_region;
#else
constexpr auto clean_stack = [](const void* /*begin*/, std::size_t /*size*/) {};
#endif

int run_child(void* given) {
  ChildSetup& setup = *static_cast<ChildSetup*>(given);
  if (prepare(setup)) ::execve(setup.program, setup.arguments, setup.environment);
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
  clean_stack(stack.data(), stack.size());
  int pidfd = -1;
  // No handler of ours may run in the child before it has its own dispositions.
  const BlockedSignals blocked;
  const pid_t pid = clone_process(run_child, stack.data() + stack.size(),
                                  CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &setup, &pidfd);
  if (pid < 0) setup.error = errno;
  return {pid, Descriptor(pidfd)};
}

[[noreturn]] void fail(const std::filesystem::path& program, int error_number) {
  const bool wrong_program = error_number == ENOENT || error_number == EACCES || error_number == ENOEXEC;
  throw Error({.kind = wrong_program ? ErrorKind::usage : ErrorKind::system,
               .what = std::string("cannot be started: ") + std::strerror(error_number),
               .where = program.string(),
               .hint = error_number == ENOEXEC ? "a script needs a first line like #!/bin/sh" : ""});
}

}  // namespace

Process ProcessLauncher::operator()(const boost::asio::io_context::executor_type& executor,
                                    const std::filesystem::path& program,
                                    std::vector<std::string> arguments) const {
  std::vector<std::string> variables = environment.to_strings();
  const std::vector<char*> argv = pointers_to(arguments);
  const std::vector<char*> envp = pointers_to(variables);
  ChildSetup setup = {.launcher = *this,
                      .program = program.c_str(),
                      .arguments = argv.data(),
                      .environment = envp.data(),
                      .parent = ::getpid()};
  Cloned child = clone_child(setup);
  if (child.pid > 0 && setup.error != 0) ::waitpid(child.pid, nullptr, 0);
  if (setup.error != 0) fail(program, setup.error);
  return Process(executor, child.pid, child.pidfd.release());
}

}  // namespace acc
