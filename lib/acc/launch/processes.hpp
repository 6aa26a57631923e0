// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/launch/exit_status.hpp"
#include "acc/plan/cpu_binding.hpp"
#include "acc/rendezvous/rendezvous.hpp"

namespace acc::launcher {

/// What a worker has as its standard input.
enum class WorkerInput {
  shared,    ///< acc's own
  none,      ///< /dev/null
  terminal,  ///< acc's own, which is a terminal: the worker becomes its foreground
};

/// One worker to start.
struct WorkerStart {
  int local_rank = 0;
  /// Over all nodes.
  int rank = 0;
  std::filesystem::path program = {};
  /// The whole argv, the program's name first.
  std::vector<std::string> arguments = {};
  Environment environment = {};
  /// Where its redirected streams go; empty: nowhere.
  std::filesystem::path folder = {};
  /// In front of each of its lines that is tee'd.
  std::string line_prefix = {};
  /// Where it runs; absent: as acc.
  std::optional<CpuBinding> binding = {};
  WorkerInput input = WorkerInput::shared;
};

/// The numbers of a process.
struct StartedWorker {
  pid_t pid = 0;
  /// The one that it has for itself, where it is in a pid namespace; 0: the same.
  pid_t pid_inside = 0;
};

/// What can happen while a job runs.
struct WorkerEnded {
  int local_rank = 0;
  ExitStatus status = {};
  std::chrono::system_clock::time_point when = {};
};
struct SignalArrived {
  int signal = 0;
  /// Counts as two: patience ends at once.
  bool now = false;
};
/// Every stray of the last signal_strays() has ended.
struct StraysGone {};
/// The output that finish_output() found has reached its readers.
struct OutputWritten {};
/// The process that the user sees is dead; nobody is left to report to.
struct FrontLost {};
/// Whoever read acc's output is gone, and nothing else gets what workers write.
struct ReaderLost {};
/// No rank of that attempt has done anything for so long.
struct Hung {
  int attempt = 0;
  std::chrono::milliseconds idle = {};
  /// Where each rank stands, lines for a person.
  std::string places = {};
};
/// More about it, as debuggers tell it, lines for a person.
struct HangStacks {
  int attempt = 0;
  std::string text = {};
};
/// There is nothing more to tell.
struct HangExamined {
  int attempt = 0;
};
/// The deadline passed and nothing happened.
struct TimeUp {};
using Happening = std::variant<WorkerEnded, SignalArrived, NodeEvent, StraysGone, OutputWritten, FrontLost,
                               ReaderLost, Hung, HangStacks, HangExamined, TimeUp>;

/// The seam between the agent, which decides, and the system, which acts. One thread; what happens is told by
/// next() alone, so that the agent reads as a sequence and a test needs no process.
class Processes {
 public:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;

  Processes() = default;
  virtual ~Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  /// Starts a worker as the leader of its own session, or of its own group when it gets the terminal; its end
  /// arrives once. Throws Error{system} naming program and reason when it cannot be started; then nothing of
  /// it is left.
  virtual StartedWorker start(const WorkerStart& worker) = 0;

  /// To the worker's whole process group; nothing when the worker has ended.
  virtual void signal(int local_rank, int signal) = 0;

  /// To every process that descends from a worker, once all workers have ended. False: there is none; else
  /// StraysGone follows.
  virtual bool signal_strays(int signal) = 0;

  /// Waits for the next thing that happens; TimeUp when that is not before `deadline` (none: no limit). A
  /// deadline that has passed still takes what has happened already.
  virtual Happening next(std::optional<TimePoint> deadline) = 0;

  /// Lets next() tell this too, after what has happened already.
  virtual void post(Happening happening) = 0;

  virtual TimePoint now() const = 0;

  /// All workers have ended: takes what is left in their pipes, then closes them.
  virtual void end_attempt() = 0;

  /// The end of what a worker of the last attempt wrote to its standard error.
  virtual std::string last_words(int local_rank) = 0;

  /// A person has that before their eyes, on the terminal where acc's own lines appear.
  virtual bool is_just_above(int local_rank) = 0;

  /// What workers wrote and full disks did not take, in words, after a last try; empty: nothing.
  virtual std::string lost_output() = 0;

  /// True: all output is written. Else OutputWritten follows.
  virtual bool finish_output() = 0;
};

}  // namespace acc::launcher
