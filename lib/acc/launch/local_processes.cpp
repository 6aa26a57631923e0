// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/local_processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/launch/binding_masks.hpp"
#include "acc/launch/descendants.hpp"
#include "acc/launch/guard.hpp"

namespace acc::launcher {
namespace {

constexpr int kMaxLateLooks = 64;

sigset_t signals_of(const std::set<int>& also) {
  std::vector<int> signals = forwarded_signals(also);
  signals.push_back(SIGCHLD);
  return signal_set_of(signals);
}

// Not a handler that notes what came: of SIGTSTP and SIGCONT the kernel keeps the later one, and such notes
// would be read in the order of their numbers, which leaves a continued job stopped.
int open_signals(const sigset_t& signals) {
  ::signal(SIGCHLD, SIG_DFL);  // where it is ignored, nothing is told of a child
  const int fd = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd >= 0) return fd;
  throw Error(
      {.kind = ErrorKind::system, .what = fmt::format("cannot receive signals: {}", std::strerror(errno))});
}

}  // namespace

Process spawn(boost::asio::io_context& loop, const WorkerStart& worker, const WorkerStreams& streams,
              const rlimit& open_files) {
  const BindingMasks binding(worker.binding);
  const bool foreground = worker.input == WorkerInput::terminal;
  const ProcessLauncher launcher = {.environment = worker.environment,
                                    .in = streams.in.get(),
                                    .out = streams.out.get(),
                                    .err = streams.err.get(),
                                    .place = foreground ? ProcessPlace::foreground : ProcessPlace::session,
                                    .open_files = open_files,
                                    .before_exec = [&binding] { return binding.apply(); }};
  return launcher(loop.get_executor(), worker.program, worker.arguments);
}

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

LocalProcesses::LocalProcesses(boost::asio::io_context& loop, Output& output, const ProcessOptions& options)
    : loop_(loop),
      output_(output),
      blocked_(signals_of(options.also)),
      signals_(loop, open_signals(signals_of(options.also))),
      front_(loop),
      terminal_(options.terminal),
      outside_(options.outside) {
  // A worker costs up to four descriptors; workers themselves keep the limit that acc was given.
  ::getrlimit(RLIMIT_NOFILE, &open_files_);
  const rlimit most = {.rlim_cur = open_files_.rlim_max, .rlim_max = open_files_.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &most);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file as large as it may be (ulimit -f) is an error like a full disk

  wait_for_signal();
  if (options.front >= 0) wait_for_front(options.front);
  output_.on_written([this] { happened_.push_back(OutputWritten{}); });
  output_.on_reader_lost([this] { happened_.push_back(ReaderLost{}); });
}

LocalProcesses::~LocalProcesses() {
  take_terminal_back();
  ::setrlimit(RLIMIT_NOFILE, &open_files_);
}

void LocalProcesses::wait_for_signal() {
  signals_.async_wait(stream_descriptor::wait_read, [this](error_code error) {
    if (error) return;
    signalfd_siginfo one = {};
    if (::read(signals_.native_handle(), &one, sizeof one) == sizeof one)
      take_signal(static_cast<int>(one.ssi_signo));
    wait_for_signal();
  });
}

void LocalProcesses::take_signal(int signal) {
  if (signal == SIGCHLD) {
    suspend_with_worker();
    reap_orphans([this](pid_t pid) { return is_running(pid); });
    return;
  }
  log::debug("received {}", signal_name(signal));
  if (signal == SIGWINCH) output_.resize();
  if (signal == SIGCONT) wake_with_front();
  happened_.push_back(SignalArrived{signal});
}

void LocalProcesses::wait_for_front(int front) {
  front_.assign(::fcntl(front, F_DUPFD_CLOEXEC, 3));
  front_.async_wait(stream_descriptor::wait_read, [this](error_code error) {
    if (!error) happened_.push_back(FrontLost{});
  });
}

StartedWorker LocalProcesses::start(const WorkerStart& worker) {
  const WorkerStreams streams = open_streams(worker);
  const auto [place, added] = workers_.emplace(worker.local_rank, spawn(loop_, worker, streams, open_files_));
  const Process& process = place->second;
  wait_for_end(worker.local_rank);
  if (worker.input == WorkerInput::terminal) borrower_ = process.id();
  if (outside_ == nullptr) return {.pid = process.id()};
  const Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.id(), 0)));
  return {.pid = outside_->of(pidfd.get()), .pid_inside = process.id()};
}

WorkerStreams LocalProcesses::open_streams(const WorkerStart& worker) {
  if (worker.input == WorkerInput::terminal) {
    output_.open_untouched(worker.local_rank);
    return {};
  }
  WorkerStreams streams = output_.open(worker.local_rank, worker.folder, worker.line_prefix, worker.rank);
  if (worker.input == WorkerInput::none) streams.in = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return streams;
}

void LocalProcesses::take_terminal_back() {
  if (terminal_ != nullptr && borrower_ != 0) terminal_->take_back(std::exchange(borrower_, 0));
}

// Ctrl-Z stopped the worker: the shell must see its job stop, which is the front's group.
void LocalProcesses::suspend_with_worker() {
  siginfo_t info = {};
  if (borrower_ == 0 || ::waitid(P_PID, static_cast<id_t>(borrower_), &info, WSTOPPED | WNOHANG) != 0) return;
  if (info.si_pid != borrower_) return;
  suspended_ = true;
  terminal_->take_back(borrower_);
  // Where no shell could continue the front it does not stop, and says at once that it goes on.
  ::kill(-terminal_->owner(), SIGTSTP);
}

void LocalProcesses::wake_with_front() {
  if (borrower_ == 0 || !std::exchange(suspended_, false)) return;
  // In the background (`bg`) the terminal is the shell's.
  if (terminal_->is_back()) terminal_->lend(borrower_);
  ::kill(-borrower_, SIGCONT);
}

void LocalProcesses::wait_for_end(int local_rank) {
  workers_.at(local_rank).async_wait([this, local_rank](error_code error, int /*exit_code*/) {
    if (!error) take_end(local_rank, to_exit_status(workers_.at(local_rank).native_exit_code()));
  });
}

void LocalProcesses::take_end(int local_rank, ExitStatus status) {
  const auto worker = workers_.find(local_rank);
  const pid_t ended = worker->second.id();
  // It is reaped, and its number may be another process's soon: nothing may be sent there, nor waited for.
  worker->second.detach();
  workers_.erase(worker);
  if (ended == borrower_) take_terminal_back();
  happened_.push_back(WorkerEnded{local_rank, status, std::chrono::system_clock::now()});
  // An orphan that ended while the worker stood before it in the kernel's list.
  reap_orphans([this](pid_t pid) { return is_running(pid); });
}

bool LocalProcesses::is_running(pid_t pid) const {
  return std::ranges::any_of(workers_, [pid](const auto& worker) { return worker.second.id() == pid; });
}

void LocalProcesses::signal(int local_rank, int signal) {
  const auto worker = workers_.find(local_rank);
  if (worker == workers_.end()) return;
  log::debug("sends {} to local rank {}", signal_name(signal), local_rank);
  ::kill(-worker->second.id(), signal);
}

bool LocalProcesses::signal_strays(int signal) {
  strays_.clear();
  strays_left_ = 0;
  std::erase_if(happened_, [](const Happening& one) { return std::holds_alternative<StraysGone>(one); });
  // No child, no descendant: we are the subreaper, so each of them hangs below a child of ours.
  if (!reap_orphans([this](pid_t pid) { return is_running(pid); })) return false;
  for (const Descendant& descendant : descendants_of(::getpid())) {
    if (is_running(descendant.pid)) continue;
    log::debug("sends {} to process {}, which a worker left", signal_name(signal), descendant.pid);
    Descriptor process = signal_descendant(descendant, signal);
    if (process) watch_stray(process.release());
  }
  return strays_left_ > 0;
}

void LocalProcesses::watch_stray(int pidfd) {
  auto& stray = strays_.emplace_back(std::make_unique<stream_descriptor>(loop_, pidfd));
  ++strays_left_;
  stray->async_wait(stream_descriptor::wait_read, [this](error_code error) {
    if (!error && --strays_left_ == 0) happened_.push_back(StraysGone{});
  });
}

Happening LocalProcesses::next(std::optional<TimePoint> deadline) {
  while (happened_.empty() && (!deadline || now() < *deadline)) {
    if (deadline) {
      loop_.run_one_until(*deadline);
    } else {
      loop_.run_one();
    }
  }
  // What is ready counts although the deadline has passed, but a flood of output must not defer it for ever.
  for (int looks = 0; looks < kMaxLateLooks && happened_.empty(); ++looks) {
    if (loop_.poll_one() == 0) break;
  }
  if (happened_.empty()) return TimeUp{};
  Happening happening = std::move(happened_.front());
  happened_.pop_front();
  return happening;
}

std::string LocalProcesses::lost_output() {
  const Output::Lost lost = output_.lost();
  if (lost.bytes == 0) return {};
  return fmt::format("{} of output {} lost: {}",
                     lost.bytes == 1 ? "1 byte" : fmt::format("{} bytes", lost.bytes),
                     lost.bytes == 1 ? "is" : "are", lost.reason);
}

void LocalProcesses::end_attempt() {
  output_.end_attempt();
  workers_.clear();
}

}  // namespace acc::launcher
