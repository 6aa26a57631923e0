// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/local_processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/limit_hint.hpp"
#include "acc/base/log.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/launch/console.hpp"
#include "acc/launch/guard.hpp"
#include "acc/launch/process_tree.hpp"

namespace acc::launcher {
namespace {

constexpr std::size_t kWordBits = sizeof(unsigned long) * 8;

// Sets bit n for CPU or node n.
std::vector<unsigned long> to_mask(const std::vector<int>& numbers) {
  std::vector<unsigned long> mask;
  for (const int number : numbers) {
    const auto bit = static_cast<std::size_t>(number);
    if (mask.size() <= bit / kWordBits) mask.resize(bit / kWordBits + 1);
    mask[bit / kWordBits] |= 1UL << (bit % kWordBits);
  }
  return mask;
}

}  // namespace

BindingMasks::BindingMasks(const std::optional<CpuBinding>& binding) {
  if (!binding) return;
  cpus_ = to_mask(binding->cpus);
  nodes_ = to_mask(binding->numa_nodes);
}

bool BindingMasks::apply() const {
  if (cpus_.empty()) return true;
  if (::syscall(SYS_sched_setaffinity, 0, cpus_.size() * sizeof cpus_[0], cpus_.data()) < 0) return false;
  int nodes = 0;
  for (const unsigned long word : nodes_) nodes += std::popcount(word);
  // Preferred rather than bound: a full node must not end a training. Containers often refuse the call; the
  // kernel then still prefers the CPU's own node. It reads one bit less than maxnode, hence + 1.
  ::syscall(SYS_set_mempolicy, nodes > 1 ? MPOL_PREFERRED_MANY : MPOL_PREFERRED, nodes_.data(),
            nodes_.size() * kWordBits + 1);
  return true;
}

namespace {

constexpr int kMaxLatePolls = 64;

sigset_t signals_of(const std::set<int>& additional) {
  std::vector<int> signals = forwarded_signals(additional);
  signals.push_back(SIGCHLD);
  return signal_set_of(signals);
}

// signalfd(2) rather than Asio's signal_set: of SIGTSTP and SIGCONT the kernel keeps the later one pending,
// while a signal_set would deliver both in the order of their numbers and leave a continued job stopped.
int open_signals(const sigset_t& signals) {
  const int fd = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd >= 0) return fd;
  throw Error({.kind = ErrorKind::system,
               .what = fmt::format("cannot receive signals: {}", std::strerror(errno)),
               .hint = limit_hint(errno)});
}

}  // namespace

Process execute(const ProcessLauncher& launcher, boost::asio::io_context& loop, const WorkerStart& worker) {
  return launcher(loop.get_executor(), worker.program, worker.arguments);
}

Process spawn(boost::asio::io_context& loop, WorkerStart worker, const WorkerStreams& streams,
              const OwnChanges& changes, const StartProcess& start) {
  const BindingMasks binding(worker.binding);
  const bool foreground = worker.input == WorkerInput::terminal;
  const ProcessLauncher launcher = {
      .environment = std::move(worker.environment),
      .in = streams.in.get(),
      .out = streams.out.get(),
      .err = streams.err.get(),
      .grouping = foreground ? ProcessGrouping::foreground : ProcessGrouping::session,
      .signals_to_reset = changes.signals,
      .ignored_signals = worker.ignored_signals,
      .open_files = changes.open_files,
      .before_exec = [&binding] { return binding.apply(); }};
  return start(launcher, loop, worker);
}

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

LocalProcesses::LocalProcesses(boost::asio::io_context& loop, Output& output, const ProcessOptions& options)
    : loop_(loop),
      output_(output),
      blocked_(signals_of(options.additional_signals)),
      signals_(loop, open_signals(signals_of(options.additional_signals))),
      supervisor_(loop),
      deadline_(loop),
      changes_{.open_files = options.open_files},
      terminal_(options.terminal),
      outside_(options.outside),
      start_(options.start),
      fork_server_(options.fork_server) {
  ::signal(SIGPIPE, SIG_IGN);
  changes_.signals = changed_signals();
  wait_for_signal();
  if (options.supervisor >= 0) wait_for_supervisor(options.supervisor);
  output_.on_written([this] { events_.push_back(OutputWritten{}); });
  output_.on_reader_lost([this] { events_.push_back(ReaderLost{}); });
}

LocalProcesses::~LocalProcesses() {
  take_terminal_back();
  ::setrlimit(RLIMIT_NOFILE, &changes_.open_files);
}

void LocalProcesses::wait_for_signal() {
  signals_.async_wait(stream_descriptor::wait_read, [this](error_code error) {
    if (error) return;
    signalfd_siginfo one = {};
    if (::read(signals_.native_handle(), &one, sizeof one) == sizeof one)
      on_signal(static_cast<int>(one.ssi_signo), receiver_of(one.ssi_code, one.ssi_int, Receiver::agent));
    wait_for_signal();
  });
}

void LocalProcesses::on_signal(int signal, Receiver receiver) {
  if (signal == SIGCHLD) {
    suspend_with_worker();
    reap_orphans([this](pid_t pid) { return is_own(pid); });
    return;
  }
  log::debug("received {}", signal_name(signal));
  if (signal == SIGWINCH) output_.resize();
  if (signal == SIGCONT) wake_with_supervisor();
  events_.push_back(SignalArrived{signal, receiver});
}

void LocalProcesses::wait_for_supervisor(int supervisor) {
  supervisor_.assign(::fcntl(supervisor, F_DUPFD_CLOEXEC, 3));
  supervisor_.async_wait(stream_descriptor::wait_read, [this](error_code error) {
    if (!error) events_.push_back(SupervisorLost{});
  });
}

bool LocalProcesses::prepare() {
  return fork_server_ != nullptr &&
         fork_server_->prepare(changes_.open_files,
                               [this](const std::string& refusal) { events_.push_back(Prepared{refusal}); });
}

Process LocalProcesses::start_process(const ProcessLauncher& launcher, const WorkerStart& worker) {
  if (worker.preloaded && fork_server_ != nullptr) {
    if (auto forked = fork_server_->fork(launcher, worker)) return std::move(*forked);
    log::debug("local rank {} starts cold", worker.local_rank);
  }
  return start_(launcher, loop_, worker);
}

StartedWorker LocalProcesses::start(WorkerStart worker) {
  const WorkerStreams streams = open_streams(worker);
  const int local_rank = worker.local_rank;
  const bool gets_terminal = worker.input == WorkerInput::terminal;
  const auto [entry, added] = workers_.emplace(
      local_rank, spawn(loop_, std::move(worker), streams, changes_,
                        [this](const ProcessLauncher& launcher, boost::asio::io_context&,
                               const WorkerStart& start) { return start_process(launcher, start); }));
  const Process& process = entry->second;
  StartedWorker started{.pid = process.id()};
  if (outside_ != nullptr) {
    // Before it is waited for: one that has already ended is then reaped, and has no pid outside any more.
    started = {.pid = outside_->of(process.id()), .pid_inside = process.id()};
  }
  if (gets_terminal) borrower_ = process.id();
  wait_for_end(local_rank);
  return started;
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

// Ctrl-Z has stopped the worker: the supervisor's process group, the job of the shell, must stop too.
void LocalProcesses::suspend_with_worker() {
  siginfo_t info = {};
  if (borrower_ == 0 || ::waitid(P_PID, static_cast<id_t>(borrower_), &info, WSTOPPED | WNOHANG) != 0) return;
  if (info.si_pid != borrower_) return;
  suspended_ = true;
  terminal_->take_back(borrower_);
  // In an orphaned process group the supervisor does not stop, and sends SIGCONT at once.
  ::kill(-terminal_->owner(), SIGTSTP);
}

void LocalProcesses::wake_with_supervisor() {
  if (borrower_ == 0 || !std::exchange(suspended_, false)) return;
  // After `bg` the terminal stays with the shell.
  if (terminal_->is_back()) terminal_->lend(borrower_);
  ::kill(-borrower_, SIGCONT);
}

void LocalProcesses::wait_for_end(int local_rank) {
  workers_.at(local_rank).async_wait([this, local_rank](error_code error, int /*exit_code*/) {
    if (!error) on_worker_ended(local_rank, to_exit_status(workers_.at(local_rank).native_exit_code()));
  });
}

void LocalProcesses::on_worker_ended(int local_rank, ExitStatus status) {
  const auto worker = workers_.find(local_rank);
  const pid_t ended = worker->second.id();
  // It is reaped and its pid may be reused: it must not be signalled or waited for again.
  worker->second.detach();
  workers_.erase(worker);
  if (ended == borrower_) take_terminal_back();
  events_.push_back(WorkerEnded{local_rank, status, std::chrono::system_clock::now()});
  // waitid() shows one ended child at a time: orphans may be waiting behind the worker.
  reap_orphans([this](pid_t pid) { return is_own(pid); });
}

// A worker, or the fork server.
bool LocalProcesses::is_own(pid_t pid) const {
  if (fork_server_ != nullptr && fork_server_->pid() == pid) return true;
  return std::ranges::any_of(workers_, [pid](const auto& worker) { return worker.second.id() == pid; });
}

void LocalProcesses::signal(int local_rank, int signal) {
  const auto worker = workers_.find(local_rank);
  if (worker == workers_.end()) return;
  log::debug("sends {} to local rank {}", signal_name(signal), local_rank);
  ::kill(-worker->second.id(), signal);
}

bool LocalProcesses::signal_if_handled(int local_rank, int signal) {
  const auto worker = workers_.find(local_rank);
  if (worker == workers_.end()) return false;
  const pid_t leader = worker->second.id();
  std::vector<Descendant> processes = descendants_of(leader);
  processes.push_back({.pid = leader, .parent = ::getpid()});
  bool is_delivered = false;
  for (const Descendant& process : processes) {
    if (::getpgid(process.pid) != leader || !handles_signal(process.pid, signal)) continue;
    if (!signal_descendant(process, signal)) continue;
    log::debug("sends {} to process {} of local rank {}", signal_name(signal), process.pid, local_rank);
    is_delivered = true;
  }
  return is_delivered;
}

bool LocalProcesses::signal_orphans(int signal) {
  orphans_.clear();
  orphans_left_ = 0;
  std::erase_if(events_, [](const AgentEvent& one) { return std::holds_alternative<OrphansGone>(one); });
  // As a subreaper we have no descendants when we have no children.
  if (!reap_orphans([this](pid_t pid) { return is_own(pid); })) return false;
  for (const Descendant& descendant : descendants_of(::getpid())) {
    if (is_own(descendant.pid) || is_asking_child(descendant.pid)) continue;
    log::debug("sends {} to process {}, which a worker left", signal_name(signal), descendant.pid);
    Descriptor process = signal_descendant(descendant, signal);
    if (process) watch_orphan(process.release());
  }
  return orphans_left_ > 0;
}

std::vector<StuckProcess> LocalProcesses::stuck_processes() {
  std::vector<StuckProcess> stuck;
  for (const Descendant& process : descendants_of(::getpid())) {
    const bool is_workers = fork_server_ == nullptr || fork_server_->pid() != process.pid;
    if (!is_workers || is_asking_child(process.pid)) continue;
    if (const auto kernel = wait_in_kernel(process.pid)) stuck.push_back({process.pid, *kernel});
  }
  return stuck;
}

void LocalProcesses::watch_orphan(int pidfd) {
  auto& orphan = orphans_.emplace_back(std::make_unique<stream_descriptor>(loop_, pidfd));
  ++orphans_left_;
  orphan->async_wait(stream_descriptor::wait_read, [this](error_code error) {
    if (!error && --orphans_left_ == 0) events_.push_back(OrphansGone{});
  });
}

AgentEvent LocalProcesses::next(std::optional<TimePoint> deadline) {
  while (events_.empty() && (!deadline || now() < *deadline)) {
    if (deadline && *deadline != deadline_.expiry()) {
      deadline_.expires_at(*deadline);
      deadline_.async_wait([](error_code /*error*/) {});
    }
    loop_.run_one();
  }
  // Ready handlers run even after the deadline, but not without limit: output may never cease.
  for (int polls = 0; polls < kMaxLatePolls && events_.empty(); ++polls) {
    if (loop_.poll_one() == 0) break;
  }
  if (events_.empty()) return TimeUp{};
  AgentEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

std::string LocalProcesses::lost_output() {
  const Output::Lost lost = output_.lost();
  return lost_output_text(lost.bytes, lost.reason);
}

std::string LocalProcesses::drop_output() {
  const Output::Lost lost = output_.drop();
  return lost_output_text(lost.bytes, lost.reason);
}

void LocalProcesses::end_attempt() {
  output_.end_attempt();
  workers_.clear();
}

}  // namespace acc::launcher
