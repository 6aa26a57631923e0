// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/agent.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/launch/failure_json.hpp"
#include "acc/launch/line_prefix.hpp"
#include "acc/launch/restart_decision.hpp"
#include "acc/launch/root_cause.hpp"
#include "acc/plan/debugging.hpp"
#include "acc/plan/worker_environment.hpp"

namespace acc::launcher {
namespace {

using TimePoint = Processes::TimePoint;

// Slurm sends SIGTERM twice within milliseconds, and a signal to a whole group arrives once more through us.
constexpr auto kSameSignal = std::chrono::milliseconds(100);
constexpr auto kMostGraceOfStrays = std::chrono::seconds(5);
// A process closes its connections before it has ended, and another node may see that first.
constexpr auto kMaxWaitForCause = std::chrono::seconds(2);

// Whether a worker that was asked to end had another end: a crash, or a code of its own.
bool ended_by_itself(const ExitStatus& status) {
  if (const auto* signaled = std::get_if<Signaled>(&status))
    return signaled->signal != SIGTERM && signaled->signal != SIGKILL && signaled->signal != SIGINT;
  constexpr int kBySigterm = 128 + SIGTERM;
  return std::get<Exited>(status).code != kBySigterm;
}

struct Worker {
  pid_t pid = 0;
  std::optional<ExitStatus> status = {};
  std::chrono::system_clock::time_point when = {};
  /// We asked it to end before it did.
  bool stopped = false;
  bool killed = false;
};

class Agent {
 public:
  Agent(const LaunchPlan& plan, const JobParts& parts) : plan_(plan), parts_(parts) {}

  LaunchReport run();

 private:
  void run_attempt();
  bool meet();
  bool goes_on();
  void leave();
  void start_workers();
  void start_worker(int local_rank);
  void stop_workers();
  void signal_workers(int signal);
  void kill_workers();
  void clear_strays();
  void finish_output();
  void report_finish();

  Happening take(std::optional<TimePoint> deadline);
  void take_worker_end(const WorkerEnded& ended);
  void take_news(NodeEvent news);
  void take_signal(const SignalArrived& arrived);
  void take_lost_reader();
  void take_suspension(bool suspended);
  void take_hang(const Happening& happening);
  bool still_hangs(int attempt) const;

  WorkerFailure describe(int local_rank) const;
  WorkerFailure find_cause();
  void wait_for_cause();
  bool is_own(const WorkerFailure& failure) const;
  std::vector<int> ranks_where(bool Worker::*mark) const;
  int rank_of(int local_rank) const { return round_.first_rank + local_rank; }
  bool asked_to_end() const { return stop_signal_ || front_lost_; }
  bool must_end() const { return asked_to_end() || over_ || hung_ || !failed_.empty(); }

  const LaunchPlan& plan_;
  JobParts parts_;
  LaunchReport report_ = {};

  /// Restarts so far.
  int attempt_ = 0;
  Round round_ = {};
  std::optional<RoundReady> ready_ = {};
  std::optional<RoundOver> over_ = {};
  bool job_done_ = false;
  bool left_ = false;
  std::vector<Worker> workers_ = {};
  int running_ = 0;
  /// Local ranks that failed by themselves, in the order in which they ended.
  std::vector<int> failed_ = {};
  /// From the start of the attempt to its first failure.
  TimePoint began_ = {};
  std::chrono::milliseconds uptime_ = {};
  std::optional<OomWatch> oom_ = {};
  /// Nobody did anything, and the plan says that this ends the attempt.
  bool hung_ = false;
  /// The workers are stopped, as by Ctrl-Z.
  bool suspended_ = false;

  std::optional<int> stop_signal_ = {};
  TimePoint stopped_at_ = {};
  /// When patience ends; set once the first worker was asked to end.
  std::optional<TimePoint> grace_end_ = {};
  bool kill_now_ = false;
  bool front_lost_ = false;
};

LaunchReport Agent::run() {
  parts_.rendezvous.on_event([this](NodeEvent news) { parts_.processes.post(std::move(news)); });
  do {
    report_ = {.restarts = attempt_};
    run_attempt();
    if (!failed_.empty()) report_.first_failure = find_cause();
    // A signal to the whole job reaches the workers too, and their end can be seen before the signal is.
    if (stop_signal_ && report_.first_failure &&
        shell_code(report_.first_failure->status) == 128 + *stop_signal_) {
      report_.first_failure.reset();
    }
    report_.hung = hung_ && failed_.empty() && !stop_signal_;
  } while (goes_on());
  report_finish();
  leave();
  finish_output();
  // A signal may have come while the last output was written.
  report_.stop_signal = stop_signal_;
  report_.exit_code = exit_code_of(report_);
  return report_;
}

// Settles with the other nodes what comes next; true: another attempt.
bool Agent::goes_on() {
  if (report_.first_failure && is_consequence(*report_.first_failure)) wait_for_cause();
  if (!over_ && !asked_to_end()) {
    if (report_.first_failure) {
      const RestartDecision decision = decide_restart(plan_, attempt_, *report_.first_failure, uptime_);
      if (!decision.reason.empty()) parts_.reporter.report(Warning{decision.reason});
      parts_.rendezvous.fail({.again = decision.restart,
                              .failure = to_json_text(*report_.first_failure),
                              .exit_code = shell_code(report_.first_failure->status)});
    } else if (report_.hung) {
      parts_.rendezvous.fail({.again = plan_.hang.then == OnHang::restart && attempt_ < plan_.max_restarts,
                              .text = "the workers of node " + parts_.host + " hang",
                              .exit_code = kHungCode});
    } else {
      parts_.rendezvous.finish();
    }
  }
  while (!over_ && !job_done_ && !asked_to_end()) take(std::nullopt);
  if (!over_ || asked_to_end()) return false;
  if (!over_->failure.empty()) report_.first_failure = parse_failure(over_->failure);
  report_.group_code = over_->exit_code;
  if (!over_->text.empty() && !report_.hung) parts_.reporter.report(GroupChanged{over_->text, over_->again});
  if (over_->again && (report_.first_failure || report_.hung)) {
    parts_.reporter.report(Restarting{report_.first_failure, attempt_ + 1, plan_.max_restarts});
  }
  return over_->again;
}

void Agent::leave() {
  std::string why;
  if (stop_signal_) why = "it was asked to end by " + signal_name(*stop_signal_);
  if (stop_signal_ == SIGPIPE) why = "nobody reads its output any more";
  if (front_lost_) why = "its front process is gone";
  parts_.rendezvous.leave(why, report_.exit_code);
  while (!left_ && !kill_now_) take(std::nullopt);
}

void Agent::run_attempt() {
  workers_.assign(static_cast<std::size_t>(plan_.nproc_per_node), Worker{});
  running_ = 0;
  failed_.clear();
  ready_.reset();
  over_.reset();
  job_done_ = false;
  grace_end_.reset();
  hung_ = false;
  oom_.emplace(parts_.cgroups);
  try {
    take(parts_.processes.now());
    if (meet()) start_workers();
    while (running_ > 0 && !must_end()) take(std::nullopt);
  } catch (...) {
    stop_workers();
    clear_strays();
    parts_.processes.end_attempt();
    throw;
  }
  stop_workers();
  clear_strays();
  parts_.processes.end_attempt();
}

// Waits for the other nodes; false: the attempt is over before it began.
bool Agent::meet() {
  if (must_end()) return false;
  parts_.rendezvous.join();
  while (!ready_ && !must_end()) take(std::nullopt);
  if (must_end()) return false;
  round_ = ready_->round;
  attempt_ = report_.restarts = ready_->restarts;
  return true;
}

void Agent::start_workers() {
  parts_.logs.make_attempt(attempt_, plan_.nproc_per_node);
  parts_.reporter.report(AttemptStarted{attempt_, round_});
  began_ = parts_.processes.now();
  for (int local_rank = 0; local_rank < plan_.nproc_per_node; ++local_rank) {
    // A signal or a worker that fails at once is noticed among 256 starts, not after them.
    while (!std::holds_alternative<TimeUp>(take(parts_.processes.now()))) {
    }
    if (must_end()) return;
    start_worker(local_rank);
  }
}

void Agent::start_worker(int local_rank) {
  const std::filesystem::path folder = parts_.logs.attempt(attempt_);
  const Attempt attempt = {.number = attempt_, .round = round_, .folder = folder.string()};
  WorkerStart start = {.local_rank = local_rank,
                       .rank = rank_of(local_rank),
                       .program = worker_program(plan_, rank_of(local_rank)),
                       .arguments = wrapped_command(plan_, rank_of(local_rank), local_rank),
                       .environment = plan_.inherited};
  start.environment.overlay(worker_environment(plan_, local_rank, attempt));
  if (!folder.empty()) start.folder = folder / std::to_string(local_rank);
  start.line_prefix = line_prefix(plan_.output.line_prefix_template,
                                  place_of_worker(plan_, local_rank, attempt), local_rank, parts_.host);
  if (!plan_.cpus_of_rank.empty()) start.binding = plan_.cpus_of_rank[static_cast<std::size_t>(local_rank)];
  if (plan_.attach) {
    start.input = plan_.attach == rank_of(local_rank) ? WorkerInput::terminal : WorkerInput::none;
  }
  Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  const StartedWorker started = parts_.processes.start(start);
  worker.pid = started.pid;
  ++running_;
  if (suspended_) parts_.processes.signal(local_rank, SIGSTOP);
  parts_.reporter.report(WorkerStarted{rank_of(local_rank), local_rank, started.pid, started.pid_inside});
}

Happening Agent::take(std::optional<TimePoint> deadline) {
  Happening happening = parts_.processes.next(deadline);
  if (const auto* ended = std::get_if<WorkerEnded>(&happening)) take_worker_end(*ended);
  if (auto* news = std::get_if<NodeEvent>(&happening)) take_news(*news);
  if (const auto* arrived = std::get_if<SignalArrived>(&happening)) take_signal(*arrived);
  take_hang(happening);
  if (std::holds_alternative<ReaderLost>(happening)) take_lost_reader();
  if (std::holds_alternative<FrontLost>(happening)) front_lost_ = kill_now_ = true;
  return happening;
}

void Agent::take_worker_end(const WorkerEnded& ended) {
  Worker& worker = workers_.at(static_cast<std::size_t>(ended.local_rank));
  worker.status = ended.status;
  worker.when = ended.when;
  --running_;
  if (!succeeded(ended.status) && !worker.stopped) {
    if (failed_.empty())
      uptime_ = std::chrono::floor<std::chrono::milliseconds>(parts_.processes.now() - began_);
    failed_.push_back(ended.local_rank);
  }
  const int rank = rank_of(ended.local_rank);
  parts_.reporter.report(WorkerFinished{rank, ended.local_rank, worker.pid, ended.status});
}

void Agent::take_news(NodeEvent news) {
  if (auto* ready = std::get_if<RoundReady>(&news)) ready_ = std::move(*ready);
  if (auto* over = std::get_if<RoundOver>(&news); over != nullptr && !over_) over_ = std::move(*over);
  if (const auto* notice = std::get_if<Notice>(&news)) parts_.reporter.report(WaitingForNodes{notice->text});
  if (std::holds_alternative<JobDone>(news)) job_done_ = true;
  if (std::holds_alternative<Left>(news)) left_ = true;
}

void Agent::take_signal(const SignalArrived& arrived) {
  const int signal = arrived.signal;
  if (!plan_.stop_signals.contains(signal)) {
    if (signal == SIGTSTP || (signal == SIGCONT && suspended_)) return take_suspension(signal == SIGTSTP);
    return signal_workers(signal);
  }
  const TimePoint now = parts_.processes.now();
  if (arrived.now) kill_now_ = true;
  if (stop_signal_) {
    if (now - stopped_at_ > kSameSignal) kill_now_ = true;
    return;
  }
  stop_signal_ = signal;
  stopped_at_ = now;
  parts_.reporter.report(Stopping{signal, running_, plan_.shutdown_timeout});
  // Workers that are being stopped already hear this one too, but their grace does not begin anew.
  if (grace_end_) signal_workers(signal);
}

// Not by SIGTSTP: the kernel ignores it where there is no shell in the session, as in a worker's.
void Agent::take_suspension(bool suspended) {
  if (suspended == suspended_) return;
  suspended_ = suspended;
  signal_workers(suspended ? SIGSTOP : SIGCONT);
  parts_.reporter.report(suspended ? Event(Suspended{}) : Event(Resumed{}));
}

// As a writer to a closed pipe ends; a worker that has failed is told all the same.
void Agent::take_lost_reader() {
  if (stop_signal_ || report_.first_failure || !failed_.empty()) return;
  stop_signal_ = SIGPIPE;
  stopped_at_ = parts_.processes.now();
  parts_.reporter.report(Stopping{SIGPIPE, running_, plan_.shutdown_timeout});
}

// It may have been found while the attempt ended.
bool Agent::still_hangs(int attempt) const {
  return attempt == attempt_ && !must_end() && running_ > 0;
}

void Agent::take_hang(const Happening& happening) {
  if (const auto* hung = std::get_if<Hung>(&happening); hung != nullptr && still_hangs(hung->attempt))
    parts_.reporter.report(HangFound{hung->idle, hung->places, plan_.hang.then, plan_.hang.cpu_counts});
  if (const auto* more = std::get_if<HangStacks>(&happening); more != nullptr && still_hangs(more->attempt))
    parts_.reporter.report(HangStacksFound{more->text});
  if (const auto* all = std::get_if<HangExamined>(&happening); all != nullptr && still_hangs(all->attempt))
    hung_ = plan_.hang.then != OnHang::report;
}

void Agent::signal_workers(int signal) {
  for (int local_rank = 0; local_rank < plan_.nproc_per_node; ++local_rank) {
    const Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
    if (worker.pid != 0 && !worker.status) parts_.processes.signal(local_rank, signal);
  }
}

// Asks the workers that still run to end, and kills those that do not in time.
void Agent::stop_workers() {
  for (Worker& worker : workers_) worker.stopped = worker.pid != 0 && !worker.status;
  if (running_ == 0) return;
  grace_end_ = parts_.processes.now() + plan_.shutdown_timeout;
  // Python ignores SIGPIPE.
  const int signal = stop_signal_.value_or(SIGTERM);
  if (!kill_now_) signal_workers(signal == SIGPIPE ? SIGTERM : signal);
  // A stopped process hears the signal only when it goes on.
  if (!kill_now_ && (hung_ || suspended_)) signal_workers(SIGCONT);
  while (running_ > 0 && !kill_now_) {
    if (std::holds_alternative<TimeUp>(take(grace_end_))) break;
  }
  if (running_ > 0) kill_workers();
  while (running_ > 0) take(std::nullopt);
}

void Agent::kill_workers() {
  for (Worker& worker : workers_) worker.killed = worker.pid != 0 && !worker.status;
  signal_workers(SIGKILL);
  report_.killed_ranks = ranks_where(&Worker::killed);
  if (!front_lost_) {
    parts_.reporter.report(Killed{report_.killed_ranks, plan_.shutdown_timeout, kill_now_});
  }
}

// What workers left behind gets what is left of their grace, then SIGKILL until nothing is left.
void Agent::clear_strays() {
  Processes& processes = parts_.processes;
  const auto patience = std::min<std::chrono::milliseconds>(plan_.shutdown_timeout, kMostGraceOfStrays);
  const TimePoint deadline = grace_end_.value_or(processes.now() + patience);
  bool waiting = !kill_now_ && processes.signal_strays(SIGTERM);
  while (waiting && !kill_now_) {
    const Happening happening = take(deadline);
    if (std::holds_alternative<TimeUp>(happening)) break;
    waiting = !std::holds_alternative<StraysGone>(happening);
  }
  while (processes.signal_strays(SIGKILL)) {
    while (!std::holds_alternative<StraysGone>(take(std::nullopt))) {
    }
  }
}

WorkerFailure Agent::describe(int local_rank) const {
  const Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  WorkerFailure failure = {.rank = rank_of(local_rank),
                           .local_rank = local_rank,
                           .pid = worker.pid,
                           .host = parts_.host,
                           .status = *worker.status,
                           .when = worker.when,
                           .attempt = attempt_,
                           .last_words = parts_.processes.last_words(local_rank)};
  const std::filesystem::path folder = parts_.logs.attempt(attempt_);
  if (!folder.empty()) {
    failure.error_file = read_error_file(folder / std::to_string(local_rank) / "error.json");
    if (failure.error_file) failure.error_file->stays = parts_.logs.stays_after_failure();
  }
  return failure;
}

WorkerFailure Agent::find_cause() {
  std::vector<WorkerFailure> seen;
  for (const int local_rank : failed_) seen.push_back(describe(local_rank));
  const bool only_consequences = std::ranges::all_of(seen, is_consequence);
  // A worker that was still dying of its own exception when it was stopped can be the cause all the same.
  for (int local_rank = 0; local_rank < plan_.nproc_per_node; ++local_rank) {
    const Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
    if (!worker.stopped || !worker.status || succeeded(*worker.status)) continue;
    WorkerFailure failure = describe(local_rank);
    if (only_consequences && ended_by_itself(*worker.status)) {
      seen.push_back(std::move(failure));
      continue;
    }
    // What we did to it is not how it failed: an uncaught exception ends a Python program with 1.
    failure.status = Exited{1};
    if (failure.error_file) seen.push_back(std::move(failure));
  }
  WorkerFailure cause = seen[find_root_cause(seen)];
  cause.out_of_memory = cause.status == ExitStatus(Signaled{SIGKILL}) && oom_->has_killed();
  report_.stopped_ranks = ranks_where(&Worker::stopped);
  std::erase(report_.stopped_ranks, cause.rank);
  return cause;
}

// The worker here only lost a peer. If that is one of another node, its agent says soon why it failed.
void Agent::wait_for_cause() {
  if (round_.num_machines == 1) return;
  const TimePoint deadline = parts_.processes.now() + kMaxWaitForCause;
  while (!over_ && !job_done_ && !asked_to_end()) {
    if (std::holds_alternative<TimeUp>(take(deadline))) return;
  }
}

std::vector<int> Agent::ranks_where(bool Worker::*mark) const {
  std::vector<int> ranks;
  for (int local_rank = 0; local_rank < plan_.nproc_per_node; ++local_rank) {
    if (workers_[static_cast<std::size_t>(local_rank)].*mark) ranks.push_back(rank_of(local_rank));
  }
  return ranks;
}

bool Agent::is_own(const WorkerFailure& failure) const {
  const auto local_rank = static_cast<std::size_t>(failure.local_rank);
  return failure.host == parts_.host && local_rank < workers_.size() &&
         workers_[local_rank].pid == failure.pid;
}

void Agent::report_finish() {
  if (auto& cause = report_.first_failure; cause && is_own(*cause))
    cause->just_above = parts_.processes.is_just_above(cause->local_rank);
  report_.stop_signal = stop_signal_;
  report_.front_lost = front_lost_;
  if (const std::string lost = parts_.processes.lost_output(); !lost.empty()) {
    const bool succeeded = exit_code_of(report_) == 0;
    report_.output_lost = true;
    parts_.reporter.report(Warning{lost + (succeeded ? "; the exit code is 1 for that" : "")});
  }
  report_.exit_code = exit_code_of(report_);
  parts_.reporter.report(Finished{report_});
}

void Agent::finish_output() {
  if (front_lost_ || parts_.processes.finish_output()) return;
  // A reader that does not read keeps us until somebody asks us to end.
  const bool asked = stop_signal_.has_value();
  const auto enough = [&] { return kill_now_ || (!asked && stop_signal_); };
  while (!enough() && !std::holds_alternative<OutputWritten>(take(std::nullopt))) {
  }
}

}  // namespace

LaunchReport run(const LaunchPlan& plan, const JobParts& parts) {
  return Agent(plan, parts).run();
}

}  // namespace acc::launcher
