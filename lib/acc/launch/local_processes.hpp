// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/subprocess/process_launcher.hpp"
#include "acc/launch/fork_server.hpp"
#include "acc/launch/output.hpp"
#include "acc/launch/process_tree.hpp"
#include "acc/launch/processes.hpp"
#include "acc/launch/terminal_loan.hpp"
#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// A CpuBinding as masks for the system calls, allocated before vfork because the child must not allocate.
class BindingMasks {
 public:
  /// nullopt binds to nothing.
  explicit BindingMasks(const std::optional<CpuBinding>& binding);

  /// Binds the calling thread to the CPUs and, if permitted, prefers the memory of their NUMA nodes. Safe
  /// between vfork and exec. Returns false and sets errno when none of the CPUs is allowed.
  bool apply() const;

 private:
  std::vector<unsigned long> cpus_ = {};
  std::vector<unsigned long> nodes_ = {};
};

/// Starts the process of a worker with what the launcher gives it: streams, environment, place, limits. The
/// environment is the launcher's alone; that of the WorkerStart is empty.
using StartProcess =
    std::function<Process(const ProcessLauncher&, boost::asio::io_context&, const WorkerStart&)>;

/// Executes the program of the worker. Throws as ProcessLauncher does.
Process execute(const ProcessLauncher& launcher, boost::asio::io_context& loop, const WorkerStart& worker);

/// What this process has changed for itself, and workers do not inherit.
struct OwnChanges {
  /// The limits of open files before.
  rlimit open_files = {};
  /// Signals that it handles or ignores; absent: any may be.
  std::optional<std::vector<int>> signals = {};
};

/// Starts a worker without our `changes`: it leads its own session (with WorkerInput::terminal its own
/// group, in the foreground), and is bound to its CPUs and where the kernel allows to the memory of their
/// nodes. Throws as `start` does.
Process spawn(boost::asio::io_context& loop, WorkerStart worker, const WorkerStreams& streams,
              const OwnChanges& changes, const StartProcess& start = execute);

struct ProcessOptions {
  /// Becomes readable when the supervisor or the guardian has ended; -1: there is none.
  int supervisor = -1;
  /// Signals to handle besides forwarded_signals().
  std::set<int> additional_signals = {};
  /// For a worker with WorkerInput::terminal.
  const TerminalLoan* terminal = nullptr;
  /// Set when this process and its workers are in a pid namespace.
  const HostPids* outside = nullptr;
  StartProcess start = execute;
  /// For workers that are preloaded.
  ForkServer* fork_server = nullptr;
  /// Those that workers keep: a worker needs up to four descriptors here, so this process raises its own.
  rlimit open_files = raise_open_files();
};

/// Implements Processes with real workers on one event loop. For the main thread of a subreaper.
class LocalProcesses : public Processes {
 public:
  /// Reads the forwarded signals and SIGCHLD from a signalfd; they stay blocked during its lifetime.
  LocalProcesses(boost::asio::io_context& loop, Output& output, const ProcessOptions& options);
  ~LocalProcesses() override;

  bool prepare() override;
  StartedWorker start(WorkerStart worker) override;
  void signal(int local_rank, int signal) override;
  bool signal_if_handled(int local_rank, int signal) override;
  bool signal_orphans(int signal) override;
  std::vector<StuckProcess> stuck_processes() override;
  AgentEvent next(std::optional<TimePoint> deadline) override;
  void post(AgentEvent event) override { events_.push_back(std::move(event)); }
  TimePoint now() const override { return Clock::now(); }
  void end_attempt() override;
  std::string stderr_tail(int local_rank) override { return output_.stderr_tail(local_rank); }
  bool is_just_above(int local_rank) override { return output_.is_just_above(local_rank); }
  std::string lost_output() override;
  bool finish_output() override { return output_.finish(); }
  std::uint64_t unread_output() override { return output_.unread(); }
  std::string drop_output() override;

 private:
  WorkerStreams open_streams(const WorkerStart& worker);
  void take_terminal_back();
  void suspend_with_worker();
  void wake_with_supervisor();
  void wait_for_signal();
  void on_signal(int signal, Receiver receiver);
  void wait_for_supervisor(int supervisor);
  void wait_for_end(int local_rank);
  void on_worker_ended(int local_rank, ExitStatus status);
  Process start_process(const ProcessLauncher& launcher, const WorkerStart& worker);
  bool is_own(pid_t pid) const;
  void watch_orphan(int pidfd);

  boost::asio::io_context& loop_;
  Output& output_;
  BlockedSignals blocked_;
  boost::asio::posix::stream_descriptor signals_;
  boost::asio::posix::stream_descriptor supervisor_;
  /// Ends a wait of next().
  RunningTimer deadline_;
  OwnChanges changes_;
  const TerminalLoan* terminal_;
  const HostPids* outside_;
  StartProcess start_;
  ForkServer* fork_server_;
  /// The worker that has the terminal; 0: none. `suspended_`: it was stopped, and the supervisor with it.
  pid_t borrower_ = 0;
  bool suspended_ = false;
  std::deque<AgentEvent> events_ = {};
  /// Running workers, by local rank.
  std::map<int, Process> workers_ = {};
  std::vector<std::unique_ptr<boost::asio::posix::stream_descriptor>> orphans_ = {};
  std::size_t orphans_left_ = 0;
};

}  // namespace acc::launcher
