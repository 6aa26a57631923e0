// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/subprocess/process_launcher.hpp"
#include "acc/launch/output.hpp"
#include "acc/launch/pid_namespace.hpp"
#include "acc/launch/processes.hpp"
#include "acc/launch/terminal_loan.hpp"

namespace acc::launcher {

/// Executes a worker with the limit `open_files`: it leads its own session (with WorkerInput::terminal its
/// own group, in the foreground), and is bound to its CPUs and where the kernel allows to the memory of their
/// nodes. Throws as ProcessLauncher does.
Process spawn(boost::asio::io_context& loop, const WorkerStart& worker, const WorkerStreams& streams,
              const rlimit& open_files);

struct ProcessOptions {
  /// Becomes readable when the process that the user sees is gone; -1: there is none.
  int front = -1;
  /// Signals to take besides forwarded_signals().
  std::set<int> also = {};
  /// For the worker whose input it is.
  const TerminalLoan* terminal = nullptr;
  /// Where this process and its workers are in a pid namespace.
  const OutsideNumbers* outside = nullptr;
};

/// The real side of Processes: workers on this machine, on one event loop. Call from the main thread of a
/// subreaper.
class LocalProcesses : public Processes {
 public:
  /// Takes over the forwarded signals and SIGCHLD, which stay blocked while it lives.
  LocalProcesses(boost::asio::io_context& loop, Output& output, const ProcessOptions& options);
  ~LocalProcesses() override;

  StartedWorker start(const WorkerStart& worker) override;
  void signal(int local_rank, int signal) override;
  bool signal_strays(int signal) override;
  Happening next(std::optional<TimePoint> deadline) override;
  void post(Happening happening) override { happened_.push_back(std::move(happening)); }
  TimePoint now() const override { return Clock::now(); }
  void end_attempt() override;
  std::string last_words(int local_rank) override { return output_.last_words(local_rank); }
  bool is_just_above(int local_rank) override { return output_.is_just_above(local_rank); }
  std::string lost_output() override;
  bool finish_output() override { return output_.finish(); }

 private:
  WorkerStreams open_streams(const WorkerStart& worker);
  void take_terminal_back();
  void suspend_with_worker();
  void wake_with_front();
  void wait_for_signal();
  void take_signal(int signal);
  void wait_for_front(int front);
  void wait_for_end(int local_rank);
  void take_end(int local_rank, ExitStatus status);
  bool is_running(pid_t pid) const;
  void watch_stray(int pidfd);

  boost::asio::io_context& loop_;
  Output& output_;
  BlockedSignals blocked_;
  boost::asio::posix::stream_descriptor signals_;
  boost::asio::posix::stream_descriptor front_;
  rlimit open_files_ = {};
  const TerminalLoan* terminal_;
  const OutsideNumbers* outside_;
  /// The worker that has the terminal; 0: none. It was stopped there, and the front with it.
  pid_t borrower_ = 0;
  bool suspended_ = false;
  std::deque<Happening> happened_ = {};
  /// Those that run, by local rank.
  std::map<int, Process> workers_ = {};
  std::vector<std::unique_ptr<boost::asio::posix::stream_descriptor>> strays_ = {};
  std::size_t strays_left_ = 0;
};

}  // namespace acc::launcher
