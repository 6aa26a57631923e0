// SPDX-License-Identifier: Apache-2.0
// Boost.Process v2 is included here alone. Debian's 1.81 lacks a symbol in its header-only form.
#define BOOST_PROCESS_V2_SEPARATE_COMPILATION
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/process/v2/posix/default_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/src.hpp>
#include <cerrno>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/launch/spawn.hpp"

namespace acc {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;

using boost::system::error_code;

error_code last_error() {
  return {errno, boost::system::system_category()};
}

// Runs in the child between fork and exec.
class ChildSetup {
 public:
  ChildSetup(const WorkerStreams& streams, const rlimit& open_files)
      : out_(streams.out.get()), err_(streams.err.get()), open_files_(open_files), parent_(::getpid()) {}

  template <typename Launcher>
  error_code on_exec_setup(Launcher&, const process::filesystem::path&, const char* const*&) const {
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have died before the line above: then nobody would ever send that signal.
    if (::getppid() != parent_) ::_exit(127);
    if (out_ >= 0 && ::dup2(out_, STDOUT_FILENO) < 0) return last_error();
    if (err_ >= 0 && ::dup2(err_, STDERR_FILENO) < 0) return last_error();
    ::setrlimit(RLIMIT_NOFILE, &open_files_);
    // Boost's own closing leaves those below its error pipe open.
    ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
    sigset_t none = {};
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    return {};
  }

  // Boost would call exit() in the child, which runs our own destructors a second time.
  template <typename... Anything>
  void on_exec_error(Anything&&...) const {
    ::_exit(127);
  }

 private:
  int out_;
  int err_;
  rlimit open_files_;
  pid_t parent_;
};

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

std::vector<const char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<const char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(word.c_str());
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void fail(const WorkerStart& worker, const std::string& reason, int error_number) {
  const bool wrong_program = error_number == ENOENT || error_number == EACCES || error_number == ENOEXEC;
  throw Error({.kind = wrong_program ? ErrorKind::usage : ErrorKind::system,
               .what = "cannot be started: " + reason,
               .where = worker.program.string(),
               .hint = error_number == ENOEXEC ? "a script needs a first line like #!/bin/sh" : ""});
}

// fork and exec. Returns the child's number.
pid_t launch(const WorkerStart& worker, const WorkerStreams& streams, const rlimit& open_files) {
  const std::vector<std::string> variables = worker.environment.to_strings();
  std::vector<const char*> environment = pointers_to(variables);
  std::vector<const char*> arguments = pointers_to(worker.arguments);
  process::posix::default_launcher launcher;
  launcher.env = environment.data();
  // Boost tells every service of the context about the fork, in the child too; an empty context keeps the
  // cost of a start independent of how many workers are watched already.
  asio::io_context nothing_else;
  error_code error;
  {
    const BlockSignals blocked;
    auto child = launcher(nothing_else.get_executor(), error, worker.program.string(), arguments.data(),
                          ChildSetup(streams, open_files));
    if (!error) child.detach();
  }
  if (!error) return launcher.pid;
  if (launcher.pid > 0) ::waitpid(launcher.pid, nullptr, 0);
  fail(worker, error.message(), error.value());
}

class BoostProcess : public SpawnedProcess {
 public:
  BoostProcess(asio::io_context& loop, pid_t pid, std::function<void(ExitStatus)> on_end)
      : process_(loop.get_executor(), pid), pid_(pid), on_end_(std::move(on_end)) {
    process_.async_wait([this](error_code error, int) {
      if (error == asio::error::operation_aborted) return;
      const ExitStatus status = to_exit_status(process_.native_exit_code());
      process_.detach();  // the number may be another's from now on
      on_end_(status);
    });
  }

  pid_t pid() const override { return pid_; }

 private:
  process::basic_process<asio::io_context::executor_type> process_;
  pid_t pid_;
  std::function<void(ExitStatus)> on_end_;
};

}  // namespace

std::unique_ptr<SpawnedProcess> spawn(asio::io_context& loop, const WorkerStart& worker,
                                      const WorkerStreams& streams, const rlimit& open_files,
                                      std::function<void(ExitStatus)> on_end) {
  const pid_t pid = launch(worker, streams, open_files);
  try {
    return std::make_unique<BoostProcess>(loop, pid, std::move(on_end));
  } catch (const boost::system::system_error& error) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    fail(worker, error.code().message(), error.code().value());
  }
}

}  // namespace acc
