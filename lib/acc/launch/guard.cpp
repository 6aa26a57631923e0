// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/limit_hint.hpp"
#include "acc/launch/process_tree.hpp"

namespace acc::launcher {
namespace {

[[noreturn]] void throw_guard_error(const char* what) {
  throw Error({.kind = ErrorKind::system,
               .what = std::string(what) + ": " + std::strerror(errno),
               .hint = limit_hint(errno)});
}

// The PR_SET_PDEATHSIG of the guardian: the supervisor has ended. SIGRTMIN may be one of --signals-to-handle.
int supervisor_died() {
  return SIGRTMIN + 1;
}

// Blocks the signals that supervisor and guardian wait for, and restores the caller's mask.
class WaitedSignals {
 public:
  explicit WaitedSignals(const std::vector<int>& signals) {
    ::sigemptyset(&set_);
    for (const int signal : signals) ::sigaddset(&set_, signal);
    ::sigaddset(&set_, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~WaitedSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  WaitedSignals(const WaitedSignals&) = delete;
  WaitedSignals& operator=(const WaitedSignals&) = delete;

  void add(int signal) {
    ::sigaddset(&set_, signal);
    ::sigprocmask(SIG_BLOCK, &set_, nullptr);
  }

  siginfo_t wait() const {
    siginfo_t info = {};
    if (::sigwaitinfo(&set_, &info) < 0) info.si_signo = SIGCHLD;
    return info;
  }

 private:
  sigset_t set_ = {};
  sigset_t before_ = {};
};

// Makes this process the parent of orphaned descendants (PR_SET_CHILD_SUBREAPER).
class Subreaper {
 public:
  Subreaper() {
    ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) throw_guard_error("cannot adopt orphans");
  }
  ~Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, before_); }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

 private:
  int before_ = 0;
};

struct Pipe {
  Descriptor out = {};
  Descriptor in = {};
};

Pipe make_guard_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_guard_error("cannot create a pipe to the agent");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Leaves the foreground process group, so that Ctrl-C reaches the supervisor only, which forwards it once. A
// process that gives the terminal to a worker has to stay in its session.
void begin_group(bool in_session) {
  if (in_session) {
    ::setpgid(0, 0);
    ::signal(SIGTTOU, SIG_IGN);
  } else {
    ::setsid();
  }
}

// Becomes readable when either pipe is closed.
Descriptor either_of(const Descriptor& first, const Descriptor& second) {
  Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event readable = {.events = EPOLLIN, .data = {}};
  for (const Descriptor* pipe : {&first, &second})
    ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, pipe->get(), &readable);
  return epoll;
}

bool is_closed(const Descriptor& pipe) {
  pollfd end = {.fd = pipe.get(), .events = POLLIN, .revents = 0};
  return ::poll(&end, 1, 0) == 1;
}

// Stops this process as SIGTSTP does by default: not in an orphaned process group, which no shell could
// continue. Continues the child afterwards, unless a pending SIGCONT will.
void stop_until_continued(pid_t child) {
  sigset_t stop = {};
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
  sigset_t pending = {};
  ::sigpending(&pending);
  if (::sigismember(&pending, SIGCONT) == 0) ::kill(child, SIGCONT);
}

// The value of a signal that is passed on: who received it, in a number that other senders do not use.
constexpr int kPassedOn = 0x61636300;

void pass_on(pid_t child, int signal, Receiver receiver) {
  ::sigqueue(child, signal, {.sival_int = kPassedOn + static_cast<int>(receiver)});
}

struct SignalHandlers {
  /// The process that handles them.
  Receiver receiver = Receiver::supervisor;
  /// The supervisor has ended; may be called more than once.
  std::function<void()> on_supervisor_died = [] {};
  /// SIGTSTP was forwarded. Does nothing where it ends the job.
  std::function<void(pid_t child)> on_stop = [](pid_t) {};
};

// Forwards signals to a child until it has ended.
ExitStatus forward_signals(pid_t child, const WaitedSignals& signals, const SignalHandlers& handlers) {
  for (;;) {
    const siginfo_t info = signals.wait();
    const int signal = info.si_signo;
    if (signal == supervisor_died()) {
      handlers.on_supervisor_died();
    } else if (signal != SIGCHLD) {
      pass_on(child, signal, receiver_of(info.si_code, info.si_value.sival_int, handlers.receiver));
      if (signal == SIGTSTP) handlers.on_stop(child);
    } else {
      // As init of a container, and from a shell that has executed acc, this process gets children of others.
      int status = 0;
      for (pid_t ended = 1; ended > 0;) {
        ended = ::waitpid(-1, &status, WNOHANG);
        if (ended == child) return to_exit_status(status);
      }
    }
  }
}

// Sent by the guardian to the supervisor.
struct GuardianReport {
  GuardReport guard = {};
  /// Why the agent could not be started; empty: it was.
  std::array<char, 256> error = {};
};
static_assert(std::is_trivially_copyable_v<GuardianReport>);

// What the supervisor passes to the guardian: its pid, the end of a pipe that it closes when it ends, and the
// pipe for the report.
struct GuardianParts {
  pid_t supervisor = 0;
  Descriptor lifeline = {};
  Descriptor report = {};
};

[[noreturn]] void become_agent(const std::function<int(int)>& agent, const GuardianParts& parts,
                               const Descriptor& guardian, bool in_session) noexcept {
  begin_group(in_session);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const int code = agent(either_of(parts.lifeline, guardian).get());
  // A guardian that is stopped would stay for ever.
  if (is_closed(parts.lifeline)) ::kill(::getppid(), SIGCONT);
  // Not exit(): the caller's atexit handlers must run only in the caller.
  ::_exit(code);
}

// Throws Error when fork fails.
pid_t start_agent(GuardianParts& parts, Pipe& guardian, const std::function<int(int)>& agent,
                  bool in_session) {
  const pid_t pid = ::fork();
  if (pid < 0) throw_guard_error("cannot start the agent");
  if (pid == 0) {
    guardian.in.reset();
    parts.report.reset();
    become_agent(agent, parts, guardian.out, in_session);
  }
  return pid;
}

[[noreturn]] void run_guardian(GuardianParts parts, WaitedSignals& signals,
                               const std::function<int(int)>& agent, const std::function<void()>& clean_up,
                               const GuardOptions& options) {
  begin_group(options.in_session);
  signals.add(supervisor_died());
  GuardianReport report;
  try {
    if (options.pid_namespace) enter_pid_namespace();
    ::prctl(PR_SET_PDEATHSIG, supervisor_died());
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    Pipe lifeline = make_guard_pipe();
    const pid_t pid = start_agent(parts, lifeline, agent, options.in_session);
    const auto wake = [&] {
      // One that is stopped could not end the workers.
      if (::getppid() != parts.supervisor) ::kill(pid, SIGCONT);
    };
    wake();  // the supervisor may have ended before PR_SET_PDEATHSIG was set
    report.guard.agent =
        forward_signals(pid, signals, {.receiver = Receiver::guardian, .on_supervisor_died = wake});
    report.guard.left_something = kill_descendants();
  } catch (const Error& error) {
    std::string_view(error.what()).copy(report.error.data(), report.error.size() - 1);
  }
  if (std::holds_alternative<Signaled>(report.guard.agent)) clean_up();
  ::signal(SIGPIPE, SIG_IGN);
  ::_exit(::write(parts.report.get(), &report, sizeof report) == sizeof report ? 0 : 1);
}

// Returns nullopt when the guardian was killed.
std::optional<GuardianReport> read_report(const Descriptor& reports) {
  GuardianReport report;
  if (::read(reports.get(), &report, sizeof report) != sizeof report) return std::nullopt;
  return report;
}

}  // namespace

Receiver receiver_of(int code, int value, Receiver self) {
  const bool passed_on =
      code == SI_QUEUE && value >= kPassedOn && value <= kPassedOn + static_cast<int>(Receiver::supervisor);
  return passed_on ? static_cast<Receiver>(value - kPassedOn) : self;
}

std::vector<int> forwarded_signals(const std::set<int>& additional) {
  std::set<int> signals = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH};
  signals.insert(additional.begin(), additional.end());
  for (const int signal : ignored_of({SIGHUP, SIGTSTP, SIGUSR1, SIGUSR2})) {
    const bool is_for_users = signal == SIGUSR1 || signal == SIGUSR2;
    if (!is_for_users || !additional.contains(signal)) signals.erase(signal);
  }
  return {signals.begin(), signals.end()};
}

GuardReport guard(const std::function<int(int supervisor)>& agent, const std::function<void()>& clean_up,
                  const GuardOptions& options) {
  const InheritedProcesses inherited;
  WaitedSignals signals(forwarded_signals(options.additional_signals));
  const Subreaper subreaper;
  Pipe reports = make_guard_pipe();
  Pipe lifeline = make_guard_pipe();
  GuardianParts parts = {
      .supervisor = ::getpid(), .lifeline = std::move(lifeline.out), .report = std::move(reports.in)};
  const pid_t pid = ::fork();
  if (pid < 0) throw_guard_error("cannot start the agent");
  if (pid == 0) {
    reports.out.reset();
    lifeline.in.reset();
    run_guardian(std::move(parts), signals, agent, clean_up, options);
  }
  parts = {};
  SignalHandlers handlers;
  if (!options.additional_signals.contains(SIGTSTP)) handlers.on_stop = stop_until_continued;
  const ExitStatus guardian = forward_signals(pid, signals, handlers);
  const auto report = read_report(reports.out);
  if (!report) {
    const bool left_something = kill_descendants([&](pid_t process) {
      // The job is in sessions of its own.
      const bool others = !options.in_session && ::getsid(process) == ::getsid(0);
      return others || inherited.contains(process);
    });
    clean_up();
    return {.agent = guardian, .left_something = left_something};
  }
  if (report->error[0] != 0) throw Error({.kind = ErrorKind::system, .what = report->error.data()});
  return report->guard;
}

}  // namespace acc::launcher
