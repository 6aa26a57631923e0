// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/spawn.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "acc/base/descriptor.hpp"
#include "acc/base/error.hpp"
#include "acc/launch/binding_masks.hpp"

namespace acc {
namespace {

namespace asio = boost::asio;

// What the child needs between vfork and exec. It runs in our memory while we wait, so nothing there may
// allocate; in exchange a start costs the same however large we are, and its failure needs no pipe to be
// told.
struct ChildSetup {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int in;
  int out;
  int err;
  /// Stays in this session and takes its terminal, which is standard input.
  bool terminal;
  rlimit open_files;
  const BindingMasks& binding;
  pid_t parent;
  /// Why it could not be executed.
  int error = 0;
};

// Asks the kernel itself: who stands in for sigaction(), as the thread sanitizer does, keeps what it was
// asked in memory, which is the agent's here.
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

bool prepare(const ChildSetup& setup) {
  reset_signals();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Where Yama guards processes from each other: a debugger that the agent starts may look at the worker.
  ::prctl(PR_SET_PTRACER, setup.parent);
  // The parent may have died before the line above: then nobody would ever send that signal.
  if (::getppid() != setup.parent) return false;
  if (setup.in >= 0 && ::dup2(setup.in, STDIN_FILENO) < 0) return false;
  if (setup.out >= 0 && ::dup2(setup.out, STDOUT_FILENO) < 0) return false;
  if (setup.err >= 0 && ::dup2(setup.err, STDERR_FILENO) < 0) return false;
  ::setrlimit(RLIMIT_NOFILE, &setup.open_files);
  if (!setup.binding.apply()) return false;
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  if (setup.terminal) {
    // All signals are blocked here: a process in the background may take the terminal.
    ::setpgid(0, 0);
    ::tcsetpgrp(STDIN_FILENO, ::getpid());
  } else {
    ::setsid();
  }
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

// No handler of ours may run in the child before it has its own dispositions.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all = {};
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_ = {};
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void fail(const WorkerStart& worker, int error_number) {
  const bool wrong_program = error_number == ENOENT || error_number == EACCES || error_number == ENOEXEC;
  throw Error({.kind = wrong_program ? ErrorKind::usage : ErrorKind::system,
               .what = std::string("cannot be started: ") + std::strerror(error_number),
               .where = worker.program.string(),
               .hint = error_number == ENOEXEC ? "a script needs a first line like #!/bin/sh" : ""});
}

struct Started {
  pid_t pid = -1;
  Descriptor pidfd = {};
};

Started execute(const WorkerStart& worker, const WorkerStreams& streams, const rlimit& open_files) {
  std::vector<std::string> variables = worker.environment.to_strings();
  std::vector<std::string> words = worker.arguments;
  const std::vector<char*> environment = pointers_to(variables);
  const std::vector<char*> arguments = pointers_to(words);
  const BindingMasks binding(worker.binding);
  ChildSetup setup = {.program = worker.program.c_str(),
                      .arguments = arguments.data(),
                      .environment = environment.data(),
                      .in = streams.in.get(),
                      .out = streams.out.get(),
                      .err = streams.err.get(),
                      .terminal = worker.input == WorkerInput::terminal,
                      .open_files = open_files,
                      .binding = binding,
                      .parent = ::getpid()};
  alignas(16) static std::array<char, std::size_t{64} << 10U> stack;
  clean_stack(stack.data(), stack.size());
  int pidfd = -1;
  pid_t pid = -1;
  {
    const BlockSignals blocked;
    pid = clone_process(run_child, stack.data() + stack.size(),
                        CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &setup, &pidfd);
  }
  if (pid < 0) fail(worker, errno);
  Started started = {pid, Descriptor(pidfd)};
  if (setup.error == 0) return started;
  ::waitpid(pid, nullptr, 0);
  fail(worker, setup.error);
}

class WatchedProcess : public SpawnedProcess {
 public:
  WatchedProcess(asio::io_context& loop, Started started, std::function<void(ExitStatus)> on_end)
      : pid_(started.pid), fd_(started.pidfd.get()), pidfd_(loop, fd_), on_end_(std::move(on_end)) {
    started.pidfd.release();
    pidfd_.async_wait(asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code error) {
      if (error || reaped_) return;
      const ExitStatus status = reap();
      on_end_(status);
    });
  }

  ~WatchedProcess() override {
    if (reaped_) return;
    ::kill(pid_, SIGKILL);
    reap();
  }

  pid_t pid() const override { return pid_; }
  int pidfd() const override { return fd_; }

 private:
  ExitStatus reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    reaped_ = true;
    pidfd_.close();
    return to_exit_status(status);
  }

  pid_t pid_;
  int fd_;
  asio::posix::stream_descriptor pidfd_;
  std::function<void(ExitStatus)> on_end_;
  bool reaped_ = false;
};

}  // namespace

std::unique_ptr<SpawnedProcess> spawn(asio::io_context& loop, const WorkerStart& worker,
                                      const WorkerStreams& streams, const rlimit& open_files,
                                      std::function<void(ExitStatus)> on_end) {
  return std::make_unique<WatchedProcess>(loop, execute(worker, streams, open_files), std::move(on_end));
}

}  // namespace acc
