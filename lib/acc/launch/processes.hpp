// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/launch/exit_status.hpp"
#include "acc/launch/guard.hpp"
#include "acc/launch/state_flush.hpp"
#include "acc/launch/step_comparison.hpp"
#include "acc/plan/launch_plan.hpp"
#include "acc/preflight/exchange.hpp"
#include "acc/rendezvous/rendezvous.hpp"

namespace acc::launcher {

/// The standard input of a worker.
enum class WorkerInput {
  shared,    ///< acc's own
  none,      ///< /dev/null
  terminal,  ///< acc's own terminal, with the worker as its foreground process group
};

/// One worker to start.
struct WorkerStart {
  int local_rank = 0;
  /// Its rank over all nodes.
  int rank = 0;
  std::filesystem::path program = {};
  /// argv, with the program's name as argv[0].
  std::vector<std::string> arguments = {};
  Environment environment = {};
  /// The folder of its log files; empty: none.
  std::filesystem::path folder = {};
  /// The prefix of each line that is tee'd.
  std::string line_prefix = {};
  /// The CPUs it is bound to; nullopt: those of acc.
  std::optional<CpuBinding> binding = {};
  WorkerInput input = WorkerInput::shared;
  /// Signals that it ignores until it installs a handler.
  std::vector<int> ignored_signals = {};
  /// It is forked from a process that is prepared for it, if there is one.
  bool preloaded = false;
};

/// The process ids of a worker.
struct StartedWorker {
  pid_t pid = 0;
  /// Its pid in its own pid namespace; 0: the same.
  pid_t pid_inside = 0;
};

/// A process that waits in the kernel, as for a disk or a driver that does not answer: until then it cannot
/// be killed.
struct StuckProcess {
  pid_t pid = 0;
  /// The kernel's function; empty: /proc does not tell.
  std::string kernel = {};
};

/// The events of a running job.
struct WorkerEnded {
  int local_rank = 0;
  ExitStatus status = {};
  std::chrono::system_clock::time_point time = {};
};
struct SignalArrived {
  int signal = 0;
  /// Which of acc's processes it was sent to; nullopt: none, it was asked for otherwise.
  std::optional<Receiver> receiver = {};
  /// Counts as two signals: workers are killed at once.
  bool now = false;
  /// The job is to end on all nodes, not on this one alone.
  bool of_job = false;
};
/// Every process signalled by the last signal_orphans() has ended.
struct OrphansGone {};
/// The output that was pending at finish_output() is written.
struct OutputWritten {};
/// The supervisor has ended; nobody is left to report to.
struct SupervisorLost {};
/// The reader of acc's output is gone, and the workers' output goes nowhere else.
struct ReaderLost {};
/// All ranks of the attempt have been idle for this long.
struct Hung {
  int attempt = 0;
  std::chrono::milliseconds idle = {};
  /// The state of each rank, as lines of text.
  std::string rank_states = {};
};
/// Stacks of the ranks that hang, as lines of text.
struct HangStacks {
  int attempt = 0;
  std::string text = {};
};
/// All stacks have been sent.
struct HangExamined {
  int attempt = 0;
};
/// All ranks of this node have been idle for this long, and whether those of the other nodes have is not
/// known, for `reason`.
struct NodeIdle {
  int attempt = 0;
  std::chrono::milliseconds idle = {};
  std::string reason = {};
};
/// A rank has become slow in a section of its steps, beside the other ranks of this node or, where this node
/// leads a job of several, of all nodes.
struct Straggler {
  int attempt = 0;
  int rank = 0;
  /// The only other rank; nullopt: there are several.
  std::optional<int> other = {};
  SlowSection slow = {};
  /// The machine of the rank; empty: ranks of this node were compared.
  std::string host = {};
};
/// The nodes of the round have been checked.
struct NodesChecked {
  NodeCheckResult result = {};
};
/// What prepare() began is done. `refusal`: why workers start as if it had not been; empty: they do not.
struct Prepared {
  std::string refusal = {};
};
/// What was begun with the newest state in memory has ended.
struct FlushEnded {
  FlushResult result = {};
};
/// The deadline passed without an event.
struct TimeUp {};
using AgentEvent = std::variant<WorkerEnded, SignalArrived, NodeEvent, OrphansGone, OutputWritten,
                                SupervisorLost, ReaderLost, Hung, HangStacks, HangExamined, NodeIdle,
                                Straggler, NodesChecked, Prepared, FlushEnded, TimeUp>;

/// The interface between the agent, which decides, and the system. Single-threaded: every event is delivered
/// by next(), so the agent reads as a sequence and its tests need no processes.
class Processes {
 public:
  using Clock = RunningClock;
  using TimePoint = Clock::time_point;

  Processes() = default;
  virtual ~Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  /// Begins what lets workers start quickly, if the job asks for that. Returns false when there is nothing to
  /// wait for; otherwise Prepared follows.
  virtual bool prepare() = 0;

  /// Starts a worker as the leader of its own session, or of its own process group when it gets the terminal;
  /// one WorkerEnded follows. Throws Error{system} naming program and reason when it cannot be started; then
  /// no process is left.
  virtual StartedWorker start(WorkerStart worker) = 0;

  /// Signals the process group of the worker; does nothing when the worker has ended.
  virtual void signal(int local_rank, int signal) = 0;

  /// Signals those processes in the group of the worker that handle the signal. Returns whether there is one.
  virtual bool signal_if_handled(int local_rank, int signal) = 0;

  /// Signals every process that the workers have left, after all workers have ended. Returns false when there
  /// is none; otherwise OrphansGone follows.
  virtual bool signal_orphans(int signal) = 0;

  /// The processes of the workers that cannot be killed now.
  virtual std::vector<StuckProcess> stuck_processes() { return {}; }

  /// Waits for the next event; returns TimeUp when there is none before `deadline` (nullopt: no limit).
  /// Pending events are returned even after the deadline.
  virtual AgentEvent next(std::optional<TimePoint> deadline) = 0;

  /// Appends an event to those that next() returns.
  virtual void post(AgentEvent event) = 0;

  virtual TimePoint now() const = 0;

  /// Reads what is left in the workers' pipes and closes them, after all workers have ended.
  virtual void end_attempt() = 0;

  /// The end of what a worker of the last attempt wrote to its standard error.
  virtual std::string stderr_tail(int local_rank) = 0;

  /// Whether these lines are still visible on the terminal on which acc's own lines appear.
  virtual bool is_just_above(int local_rank) = 0;

  /// Retries pending writes and describes the output that was lost; empty when nothing was.
  virtual std::string lost_output() = 0;

  /// Returns true when all output is written; otherwise OutputWritten follows.
  virtual bool finish_output() = 0;

  /// The number of bytes that the reader of acc's output has not read, as far as the system tells.
  virtual std::uint64_t unread_output() = 0;

  /// Gives up the output that its reader has not read, and describes it; empty when there is none.
  virtual std::string drop_output() = 0;
};

}  // namespace acc::launcher
