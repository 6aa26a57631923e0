// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/agent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "acc/base/error.hpp"
#include "acc/base/file_id.hpp"
#include "acc/base/progress_page.hpp"
#include "acc/base/text.hpp"
#include "acc/launch/guard.hpp"
#include "acc/launch/launch_report.hpp"
#include "acc/launch/line_prefix.hpp"
#include "acc/plan/debugging.hpp"
#include "acc/plan/preemption.hpp"
#include "acc/plan/preload.hpp"
#include "acc/plan/worker_environment.hpp"

namespace acc::launcher {
namespace {

using TimePoint = Processes::TimePoint;

// As kRepeatedSignal, for a notice, which one node can receive from another.
constexpr auto kRepeatedNotice = std::chrono::seconds(2);
// A notice that arrives in another way within this time, by another process of acc or from another node, is
// not a new one.
constexpr auto kCopyOfNotice = std::chrono::seconds(10);
// How soon a worker without a handler for a notice is looked at again.
constexpr auto kRepetition = std::chrono::seconds(1);
// A job that seems to hang at its end is killed by whoever looks at it.
constexpr auto kSilentFlush = std::chrono::seconds(2);
// Where workers have taken the whole grace.
constexpr auto kMinFlush = std::chrono::seconds(2);
constexpr auto kMinTimeOfReader = std::chrono::seconds(1);
constexpr auto kMaxGraceOfOrphans = std::chrono::seconds(5);
// The failure that caused a lost connection may be reported by its node a little later.
constexpr auto kMaxWaitForCause = std::chrono::seconds(2);
// How often processes that were killed and do not end are looked at.
constexpr auto kLookAtKilled = std::chrono::seconds(30);
// How long a node that cannot go on waits for the others to hear of it.
constexpr auto kMaxWaitForAnswer = std::chrono::seconds(2);

// Whether a worker that was asked to end has ended otherwise: by a crash or with its own exit code.
bool ended_by_itself(const ExitStatus& status) {
  if (const auto* signaled = std::get_if<Signaled>(&status))
    return signaled->signal != SIGTERM && signaled->signal != SIGKILL && signaled->signal != SIGINT;
  constexpr int kBySigterm = 128 + SIGTERM;
  return std::get<Exited>(status).code != kBySigterm;
}

// Who announced the end of the job: a signal to one of acc's processes, one that has ended a worker, or
// another node.
struct WorkersEnd {
  auto operator<=>(const WorkersEnd&) const = default;
};
using NoticeSender = std::variant<Receiver, WorkersEnd, std::string>;

struct KnownNotice {
  TimePoint time = {};
  std::set<NoticeSender> senders = {};
};

struct Worker {
  pid_t pid = 0;
  std::optional<ExitStatus> status = {};
  std::chrono::system_clock::time_point end_time = {};
  /// It was asked to end.
  bool stopped = false;
  bool killed = false;
};

std::string node_idle_text(const NodeIdle& found) {
  return fmt::format(
      "all ranks of this node have been idle for {}; whether those of the other nodes have is not known: {}; "
      "the job goes on (acc ps --stacks shows where the ranks stand)",
      rounded_seconds_text(found.idle), found.reason);
}

// Ends the job without a restart: another attempt would find the same.
RoundOver refused_by(const NodeCheckResult& check) {
  return {.text = check.summary, .exit_code = exit_code(ErrorKind::system)};
}

class Agent {
 public:
  Agent(const LaunchPlan& plan, JobParts parts) : plan_(plan), parts_(std::move(parts)) {}

  LaunchReport run();

 private:
  void run_attempts();
  void run_attempt();
  void tell_nodes(const Error& error);
  bool meet();
  bool check_nodes();
  bool wait_until_prepared();
  bool goes_on();
  void leave();
  void start_workers();
  void make_log_folder();
  std::filesystem::path log_folder() const;
  void start_worker(int local_rank);
  void warn_of_missing_ranks();
  void stop_workers();
  void signal_workers(int signal);
  void kill_workers();
  AgentEvent next_of_killed();
  void warn_of_stuck();
  void stop_orphans();
  std::optional<TimePoint> time_of_request() const;
  void finish_output();
  void report_finish();

  AgentEvent next_event(std::optional<TimePoint> deadline);
  void on_worker_ended(const WorkerEnded& ended);
  void on_node_event(NodeEvent event);
  void on_signal(const SignalArrived& arrived);
  bool is_repeat(const SignalArrived& arrived);
  std::optional<int> notice_that_ended(const ExitStatus& status) const;
  void on_notice(int signal, const NoticeSender& sender);
  void pass_on(const SignalPassedOn& signal);
  std::optional<TimePoint> next_repetition();
  void repeat_notices();
  void on_reader_lost();
  void suspend_or_resume(bool suspended);
  void on_prepared(const Prepared& prepared);
  void on_hang(const AgentEvent& event);
  void on_straggler(const Straggler& straggler);
  bool is_running(int attempt) const;

  void flush_while_running();
  void begin_flush(Workers workers);
  void on_flush_ended(const FlushResult& result);
  void flush_state();
  void wait_for_flush();
  void end_flush();
  std::optional<TimePoint> flush_end() const;
  void note_end();

  void note_progress();
  std::filesystem::path removed_folder() const;
  StepsReached tell_progress(bool restart);

  WorkerFailure describe(int local_rank) const;
  WorkerFailure find_cause();
  void wait_for_local_cause();
  bool may_have_lost_running(const WorkerFailure& failure) const;
  void wait_for_remote_cause();
  bool is_own(const WorkerFailure& failure) const;
  // Among the workers here: as a task of an engine, acc has one of those of its machine.
  int index_of(const WorkerFailure& failure) const {
    return failure.local_rank - plan_.output.first_local_rank;
  }
  std::vector<int> ranks_where(const std::function<bool(const Worker&)>& is_meant) const;
  int rank_of(int local_rank) const { return round_.first_rank + local_rank; }
  bool is_preempted() const {
    return plan_.requeue_on_preemption && !stopped_by_user_ && (!noticed_.empty() || stop_signal_ == SIGTERM);
  }
  bool asked_to_end() const { return stop_signal_ || supervisor_lost_; }
  bool must_end() const { return asked_to_end() || round_over_ || job_done_ || hung_ || !failed_.empty(); }

  const LaunchPlan& plan_;
  JobParts parts_;
  LaunchReport report_ = {};

  /// Restarts so far.
  int attempt_ = 0;
  Round round_ = {};
  std::optional<RoundReady> ready_ = {};
  std::optional<RoundOver> round_over_ = {};
  TimePoint round_over_at_ = {};
  bool job_done_ = false;
  bool is_leaving_ = false;
  bool has_left_ = false;
  std::vector<Worker> workers_ = {};
  int running_ = 0;
  /// Prepared is to come.
  bool preparing_ = false;
  /// Local ranks that failed without being asked to end, in the order of their ends.
  std::vector<int> failed_ = {};
  /// The report of the last attempt if that failed, for one that cannot begin.
  std::optional<LaunchReport> failed_before_ = {};
  /// Since the job's start.
  bool has_started_workers_ = false;
  /// In this attempt.
  bool has_log_folder_ = true;
  /// From the start of the attempt to its first failure.
  TimePoint began_ = {};
  std::chrono::milliseconds uptime_ = {};
  std::optional<OomWatch> oom_ = {};
  /// Since the job's start: a GPU that was lost in one attempt is missing in the next ones.
  std::optional<XidWatch> xids_ = {};
  /// All ranks were idle, and the plan says that this ends the attempt.
  bool hung_ = false;
  /// How far the workers here got since the last failure that counted, on any node, and whether they ever
  /// said so.
  StepsReached reached_ = {};
  bool is_followed_ = false;
  bool told_not_followed_ = false;
  /// Where the pages of this attempt are.
  std::optional<FileId> page_folder_ = {};
  /// Because this one was removed, nobody knows how far the workers of the attempt got; empty: they have
  /// said.
  std::filesystem::path removed_folder_ = {};
  bool told_removed_folder_ = false;
  /// What the checks before this attempt came to.
  std::optional<NodeCheckResult> checked_ = {};
  /// Of the last attempt.
  int checked_world_size_ = 0;
  /// The workers are stopped, as by Ctrl-Z.
  bool suspended_ = false;

  /// The last notice by each signal.
  std::map<int, KnownNotice> noticed_ = {};
  /// For each such signal the local ranks that had no handler for it, or were started later.
  std::map<int, std::set<int>> unreached_ = {};
  /// When those are looked at again.
  std::optional<TimePoint> repetition_ = {};
  std::optional<int> stop_signal_ = {};
  TimePoint stopped_at_ = {};
  /// Which processes of acc have received it.
  std::set<Receiver> stop_receivers_ = {};
  /// When workers that were asked to end are killed; set once they were asked.
  std::optional<TimePoint> grace_end_ = {};
  bool kill_now_ = false;
  /// When processes of this attempt that were killed are looked at again; absent: none was.
  std::optional<TimePoint> look_at_killed_ = {};
  /// Those that cannot be killed, as was told.
  std::set<pid_t> stuck_ = {};
  bool stopped_by_user_ = false;
  bool supervisor_lost_ = false;

  /// When the last worker had ended.
  TimePoint workers_end_ = {};
  /// FlushEnded is to come.
  bool flushing_ = false;
  /// The last one failed, and nobody has been told: another one may follow.
  std::optional<FlushResult> failed_flush_ = {};
};

LaunchReport Agent::run() {
  parts_.rendezvous.on_event([this](NodeEvent event) { parts_.processes.post(std::move(event)); });
  if (!is_on_cpu(plan_)) xids_.emplace(parts_.kernel_log);
  try {
    run_attempts();
  } catch (...) {
    flush_state();
    throw;
  }
  note_end();
  if (report_.exit_code != 0 && parts_.flush.begin) {
    // First, so that other nodes do not wait for the disk, and know why their workers lose those of this one.
    leave();
    flush_state();
  }
  end_flush();
  report_finish();
  leave();
  finish_output();
  // A signal may have come while the last output was written.
  note_end();
  return report_;
}

void Agent::run_attempts() {
  do {
    report_ = {.restarts = attempt_};
    try {
      run_attempt();
    } catch (const Error& error) {
      tell_nodes(error);
      if (!failed_before_) throw;
      parts_.reporter.report(Warning{fmt::format("the workers cannot be started again: {}", error.what())});
      report_ = *failed_before_;
      return;
    }
    note_progress();
    if (!failed_.empty()) report_.first_failure = find_cause();
    // A signal to the whole job reaches the workers too, and their end may be noticed first.
    if (stop_signal_ && report_.first_failure &&
        shell_code(report_.first_failure->status) == 128 + *stop_signal_) {
      report_.first_failure.reset();
    }
    report_.hung = hung_ && failed_.empty() && !stop_signal_;
  } while (goes_on());
}

// Why this node cannot go on: the others would wait for it, and end without a reason.
void Agent::tell_nodes(const Error& error) {
  const RendezvousPlan& nodes = plan_.rendezvous;
  if (nodes.max_nodes == 1 || asked_to_end()) return;
  const TimePoint deadline = parts_.processes.now() + kMaxWaitForAnswer;
  const int code = failed_before_ ? exit_code_of(*failed_before_) : exit_code(error.kind());
  if (ready_ && !round_over_ && nodes.min_nodes == nodes.max_nodes) {
    RoundOver end = {.text = fmt::format("node {}: {}", parts_.host, error.what()), .exit_code = code};
    if (failed_before_ && failed_before_->first_failure) {
      end.failure = to_json_text(*failed_before_->first_failure);
      end.reason = std::exchange(end.text, {});
    }
    parts_.rendezvous.fail(end);
    while (!round_over_ && !job_done_ && !asked_to_end()) {
      if (std::holds_alternative<TimeUp>(next_event(deadline))) return;
    }
    return;
  }
  is_leaving_ = true;
  parts_.rendezvous.leave(error.what(), code);
  while (!has_left_ && !kill_now_) {
    if (std::holds_alternative<TimeUp>(next_event(deadline))) return;
  }
}

// Agrees with the other nodes on what comes next. Returns true for another attempt.
bool Agent::goes_on() {
  if (report_.first_failure && is_consequence(*report_.first_failure)) wait_for_remote_cause();
  if (job_done_ && !ready_)
    parts_.reporter.report(GroupChanged{"the job has succeeded without this node", false});
  if (!round_over_ && !job_done_ && !asked_to_end()) {
    if (report_.first_failure) {
      const RestartDecision decision = decide_restart(plan_, attempt_, *report_.first_failure, uptime_);
      if (!decision.reason.empty()) parts_.reporter.report(Warning{decision.reason});
      parts_.rendezvous.fail({.restart = decision.restart,
                              .failure = to_json_text(*report_.first_failure),
                              .exit_code = shell_code(report_.first_failure->status),
                              .reached = tell_progress(decision.restart)});
    } else if (report_.hung) {
      const bool restart = plan_.hang.action == OnHang::restart && attempt_ < plan_.max_restarts;
      parts_.rendezvous.fail({.restart = restart,
                              .text = "the job hangs, and node " + parts_.host + " stops its workers",
                              .exit_code = kHungCode,
                              .reached = tell_progress(restart)});
    } else if (checked_ && !checked_->passed) {
      parts_.rendezvous.fail(refused_by(*checked_));
    } else {
      parts_.rendezvous.finish();
    }
  }
  while (!round_over_ && !job_done_ && !asked_to_end()) next_event(std::nullopt);
  if (!round_over_ || asked_to_end()) return false;
  // Nodes that meet in a file, or at another launcher's store, hear that another one has ended the job, not
  // why.
  const bool is_refused = checked_ && !checked_->passed && !round_over_->restart;
  if (is_refused && round_over_->exit_code == exit_code(ErrorKind::rendezvous))
    round_over_ = refused_by(*checked_);
  if (!round_over_->failure.empty()) report_.first_failure = parse_failure(round_over_->failure);
  report_.group_code = round_over_->exit_code;
  if (!round_over_->reason.empty()) parts_.reporter.report(Warning{round_over_->reason});
  if (!round_over_->text.empty() && !report_.hung)
    parts_.reporter.report(GroupChanged{round_over_->text, round_over_->restart});
  if (round_over_->restart && (report_.first_failure || report_.hung)) {
    parts_.reporter.report(Restarting{report_.first_failure, attempt_ + 1, plan_.max_restarts});
  }
  if (round_over_->reached.is_known) reached_ = {};
  failed_before_.reset();
  if (report_.first_failure || report_.hung) {
    failed_before_ = report_;
    failed_before_->group_code.reset();
    failed_before_->own_failure = report_.first_failure && is_own(*report_.first_failure);
  }
  return round_over_->restart;
}

void Agent::leave() {
  if (std::exchange(is_leaving_, true)) return;
  std::string reason;
  if (stop_signal_) reason = "it was asked to end by " + signal_name(*stop_signal_);
  if (stop_signal_ == SIGPIPE) reason = "the reader of its output is gone";
  if (supervisor_lost_) reason = "its supervisor has ended";
  parts_.rendezvous.leave(reason, report_.exit_code);
  while (!has_left_ && !kill_now_) next_event(std::nullopt);
}

void Agent::run_attempt() {
  workers_.assign(static_cast<std::size_t>(plan_.nproc_per_node), Worker{});
  running_ = 0;
  failed_.clear();
  ready_.reset();
  round_over_.reset();
  job_done_ = false;
  grace_end_.reset();
  hung_ = false;
  checked_.reset();
  unreached_.clear();
  repetition_.reset();
  look_at_killed_.reset();
  stuck_.clear();
  oom_.emplace(parts_.cgroups);
  try {
    next_event(parts_.processes.now());
    // While the nodes meet.
    preparing_ = !must_end() && parts_.processes.prepare();
    if (meet() && check_nodes() && wait_until_prepared()) start_workers();
    while (running_ > 0 && !must_end()) {
      next_event(next_repetition());
      if (repetition_ && parts_.processes.now() >= *repetition_) repeat_notices();
    }
    wait_for_local_cause();
  } catch (...) {
    stop_workers();
    stop_orphans();
    parts_.processes.end_attempt();
    throw;
  }
  stop_workers();
  stop_orphans();
  parts_.processes.end_attempt();
}

// Joins the rendezvous. Returns false when the attempt ends before it begins.
bool Agent::meet() {
  if (must_end()) return false;
  parts_.rendezvous.join();
  while (!ready_ && !must_end()) next_event(std::nullopt);
  if (must_end()) return false;
  round_ = ready_->round;
  attempt_ = report_.restarts = ready_->restarts;
  return true;
}

// Returns false when no worker is to be started.
bool Agent::check_nodes() {
  if (!parts_.check_nodes) return true;
  // A result that is pending belongs to the checks of an earlier round.
  while (!std::holds_alternative<TimeUp>(next_event(parts_.processes.now()))) {
  }
  if (must_end()) return false;
  checked_.reset();
  parts_.check_nodes(round_, attempt_);
  // Another node may learn of the result first, and end the job.
  std::optional<TimePoint> deadline;
  while (!checked_ && !asked_to_end()) {
    if (round_over_ && !deadline) deadline = parts_.processes.now() + kMaxWaitForCause;
    if (std::holds_alternative<TimeUp>(next_event(deadline))) break;
  }
  if (!checked_) return false;
  parts_.reporter.report(PreflightFinished{*checked_});
  return checked_->passed && plan_.preflight != Preflight::alone && !must_end();
}

// Returns false when the attempt ends before.
bool Agent::wait_until_prepared() {
  while (preparing_ && !must_end()) next_event(std::nullopt);
  return !must_end();
}

void Agent::start_workers() {
  make_log_folder();
  parts_.reporter.report(AttemptStarted{attempt_, round_});
  if (plan_.restarts_without_progress > 0) page_folder_ = parts_.logs.make_page_folder(attempt_);
  warn_of_missing_ranks();
  began_ = parts_.processes.now();
  for (int local_rank = 0; local_rank < plan_.nproc_per_node; ++local_rank) {
    // Handle pending events before each start: a signal or failure stops the starting of many workers.
    while (!std::holds_alternative<TimeUp>(next_event(parts_.processes.now()))) {
    }
    if (must_end()) return;
    start_worker(local_rank);
  }
}

// A disk that has become full does not end a job that runs.
void Agent::make_log_folder() {
  has_log_folder_ = true;
  try {
    parts_.logs.make_attempt(attempt_, plan_.nproc_per_node);
  } catch (const Error& error) {
    if (!has_started_workers_) throw;
    has_log_folder_ = false;
    const Problem& problem = error.problems().front();
    parts_.reporter.report(
        Warning{fmt::format("{}: {}; attempt {} has no log files", problem.where, problem.what, attempt_)});
  }
}

std::filesystem::path Agent::log_folder() const {
  return has_log_folder_ ? parts_.logs.attempt(attempt_) : std::filesystem::path();
}

// Those of --wrap-rank, once for each size of the job.
void Agent::warn_of_missing_ranks() {
  if (round_.machine_rank != 0 || std::exchange(checked_world_size_, round_.world_size) == round_.world_size)
    return;
  for (const RankWrap& wrap : plan_.wraps) {
    if (wrap.rank.value_or(0) < round_.world_size) continue;
    parts_.reporter.report(Warning{"--wrap-rank: " + missing_rank_text(*wrap.rank, round_.world_size)});
  }
}

void Agent::start_worker(int local_rank) {
  const std::filesystem::path folder = log_folder();
  const Attempt attempt = {.number = attempt_,
                           .round = round_,
                           .folder = folder.string(),
                           .progress = parts_.logs.page_prefix(attempt_)};
  WorkerStart start = {.local_rank = local_rank,
                       .rank = rank_of(local_rank),
                       .program = worker_program(plan_, rank_of(local_rank)),
                       .arguments = wrapped_command(plan_, rank_of(local_rank), local_rank),
                       .environment = plan_.inherited,
                       .ignored_signals = signals_that_workers_ignore(plan_),
                       .preloaded = is_preloaded(plan_, rank_of(local_rank))};
  start.environment.overlay(worker_environment(plan_, local_rank, attempt));
  if (!folder.empty()) start.folder = folder / std::to_string(local_rank);
  const int shown_rank = plan_.output.first_local_rank + local_rank;
  if (plan_.output.tee.streams_of(shown_rank) != Streams::none) {
    start.line_prefix = line_prefix(plan_.output.line_prefix_template,
                                    worker_env_of(plan_, local_rank, attempt), shown_rank, parts_.host);
  }
  if (!plan_.cpus_of_rank.empty()) start.binding = plan_.cpus_of_rank[static_cast<std::size_t>(local_rank)];
  if (plan_.attach) {
    start.input = plan_.attach == rank_of(local_rank) ? WorkerInput::terminal : WorkerInput::none;
  }
  Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  const StartedWorker started = parts_.processes.start(std::move(start));
  worker.pid = started.pid;
  has_started_workers_ = true;
  ++running_;
  // It has yet to install its handlers.
  for (const auto& [signal, known] : noticed_) unreached_[signal].insert(local_rank);
  if (suspended_) parts_.processes.signal(local_rank, SIGSTOP);
  parts_.reporter.report(WorkerStarted{rank_of(local_rank), local_rank, started.pid, started.pid_inside});
}

AgentEvent Agent::next_event(std::optional<TimePoint> deadline) {
  AgentEvent event = parts_.processes.next(deadline);
  if (const auto* ended = std::get_if<WorkerEnded>(&event)) on_worker_ended(*ended);
  if (const auto* of_node = std::get_if<NodeEvent>(&event)) on_node_event(*of_node);
  if (const auto* arrived = std::get_if<SignalArrived>(&event)) on_signal(*arrived);
  on_hang(event);
  if (const auto* straggler = std::get_if<Straggler>(&event)) on_straggler(*straggler);
  if (const auto* prepared = std::get_if<Prepared>(&event)) on_prepared(*prepared);
  if (auto* checked = std::get_if<NodesChecked>(&event)) checked_ = std::move(checked->result);
  if (const auto* flush = std::get_if<FlushEnded>(&event)) on_flush_ended(flush->result);
  if (std::holds_alternative<ReaderLost>(event)) on_reader_lost();
  if (std::holds_alternative<SupervisorLost>(event)) supervisor_lost_ = kill_now_ = true;
  return event;
}

void Agent::on_worker_ended(const WorkerEnded& event) {
  Worker& worker = workers_.at(static_cast<std::size_t>(event.local_rank));
  worker.status = event.status;
  worker.end_time = event.time;
  --running_;
  if (const auto notice = notice_that_ended(event.status)) {
    on_notice(*notice, WorkersEnd{});
  } else if (!succeeded(event.status) && !worker.stopped) {
    if (failed_.empty())
      uptime_ = std::chrono::floor<std::chrono::milliseconds>(parts_.processes.now() - began_);
    failed_.push_back(event.local_rank);
  }
  const int rank = rank_of(event.local_rank);
  parts_.reporter.report(WorkerFinished{rank, event.local_rank, worker.pid, event.status});
}

void Agent::on_node_event(NodeEvent event) {
  if (auto* ready = std::get_if<RoundReady>(&event)) ready_ = std::move(*ready);
  if (auto* verdict = std::get_if<RoundOver>(&event); verdict != nullptr && !round_over_) {
    round_over_ = std::move(*verdict);
    round_over_at_ = parts_.processes.now();
    // A request to end that comes now does not change what the job has ended with.
    if (!round_over_->restart && !asked_to_end()) report_.group_code = round_over_->exit_code;
  }
  if (const auto* notice = std::get_if<EndNotice>(&event)) on_notice(notice->signal, notice->host);
  if (const auto* notice = std::get_if<Notice>(&event)) parts_.reporter.report(WaitingForNodes{notice->text});
  if (std::holds_alternative<JobDone>(event)) job_done_ = true;
  if (std::holds_alternative<Left>(event)) has_left_ = true;
}

void Agent::on_signal(const SignalArrived& arrived) {
  const int signal = arrived.signal;
  if (!plan_.stop_signals.contains(signal)) {
    if (signal == SIGTSTP || (signal == SIGCONT && suspended_)) return suspend_or_resume(signal == SIGTSTP);
    if (plan_.notice_signals.contains(signal))
      return on_notice(signal, arrived.receiver.value_or(Receiver::supervisor));
    return signal_workers(signal);
  }
  // Whoever asks for the end by `acc stop` does not want the job to start again.
  stopped_by_user_ = stopped_by_user_ || !arrived.receiver;
  if (arrived.of_job) parts_.rendezvous.stop_job(128 + signal);
  if (arrived.now) kill_now_ = true;
  if (stop_signal_) {
    if (!is_repeat(arrived)) kill_now_ = true;
    return;
  }
  stop_signal_ = signal;
  stopped_at_ = parts_.processes.now();
  if (arrived.receiver) stop_receivers_.insert(*arrived.receiver);
  // Where the job is over for all nodes, as after the same signal to another one, nothing is left to be
  // stopped.
  if (running_ > 0 || !round_over_ || round_over_->restart)
    parts_.reporter.report(Stopping{signal, running_, plan_.shutdown_timeout});
  // Forwarded to workers that are being stopped, without a new grace period.
  if (grace_end_) signal_workers(signal);
  if (grace_end_ && suspended_) signal_workers(SIGCONT);
  flush_while_running();
}

// Whether the signal is the request to end that was made already, not an impatient second one.
bool Agent::is_repeat(const SignalArrived& arrived) {
  const auto elapsed = parts_.processes.now() - stopped_at_;
  const bool at_once = elapsed <= kRepeatedSignal;
  // What was asked for otherwise has no copies.
  if (arrived.signal != stop_signal_ || !arrived.receiver || stop_receivers_.empty()) return at_once;
  const bool is_copy = stop_receivers_.insert(*arrived.receiver).second;
  return at_once || is_copy || (arrived.signal == SIGTERM && elapsed <= plan_.repeated_sigterm);
}

// A worker that a notice has ended obeyed it. Workers start with such a signal ignored, but Python sets the
// default action again when it exits, and Slurm's own signal comes beside the one that is passed on. It may
// come first; but where exit code 75 would not tell of it, a worker that died of a signal that nobody else
// got has failed.
std::optional<int> Agent::notice_that_ended(const ExitStatus& status) const {
  const auto* signaled = std::get_if<Signaled>(&status);
  if (signaled == nullptr || !plan_.notice_signals.contains(signaled->signal)) return std::nullopt;
  if (!plan_.requeue_on_preemption && !noticed_.contains(signaled->signal)) return std::nullopt;
  return signaled->signal;
}

// The first of a signal counts, wherever it arrived, and is published to all nodes.
void Agent::on_notice(int signal, const NoticeSender& sender) {
  const TimePoint now = parts_.processes.now();
  const auto [entry, is_first] = noticed_.try_emplace(signal);
  auto& [time, senders] = entry->second;
  const bool is_copy = !is_first && senders.insert(sender).second;
  if (!is_first && now - time <= (is_copy ? kCopyOfNotice : kRepeatedNotice)) return;
  entry->second = {.time = now, .senders = {sender}};
  const auto* host = std::get_if<std::string>(&sender);
  if (host == nullptr) parts_.rendezvous.announce_end(signal);
  pass_on({.signal = signal, .host = host == nullptr ? std::string() : *host});
  flush_while_running();
}

void Agent::pass_on(const SignalPassedOn& signal) {
  SignalPassedOn event = signal;
  std::set<int>& unreached = unreached_[signal.signal];
  unreached.clear();
  for (int local_rank = 0; local_rank < plan_.nproc_per_node; ++local_rank) {
    const Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
    if (worker.pid == 0 || worker.status) continue;
    const bool handled = parts_.processes.signal_if_handled(local_rank, event.signal);
    (handled ? event.ranks : event.ranks_without_handler).push_back(rank_of(local_rank));
    if (!handled) unreached.insert(local_rank);
  }
  parts_.reporter.report(event);
}

// However many other events come before it.
std::optional<TimePoint> Agent::next_repetition() {
  const bool all_reached =
      std::ranges::all_of(unreached_, [](const auto& entry) { return entry.second.empty(); });
  if (all_reached)
    repetition_.reset();
  else if (!repetition_)
    repetition_ = parts_.processes.now() + kRepetition;
  return repetition_;
}

// A worker that was still importing may have its handler now.
void Agent::repeat_notices() {
  repetition_.reset();
  for (auto& [signal, unreached] : unreached_) {
    SignalPassedOn event = {.signal = signal};
    std::erase_if(unreached, [&](int local_rank) {
      if (workers_[static_cast<std::size_t>(local_rank)].status) return true;
      if (!parts_.processes.signal_if_handled(local_rank, signal)) return false;
      event.ranks.push_back(rank_of(local_rank));
      return true;
    });
    if (!event.ranks.empty()) parts_.reporter.report(event);
  }
}

// SIGSTOP, since the kernel ignores SIGTSTP in an orphaned process group, as a worker's is.
void Agent::suspend_or_resume(bool suspended) {
  if (suspended == suspended_) return;
  suspended_ = suspended;
  signal_workers(suspended ? SIGSTOP : SIGCONT);
  parts_.reporter.report(suspended ? Event(Suspended{}) : Event(Resumed{}));
}

void Agent::on_prepared(const Prepared& prepared) {
  preparing_ = false;
  if (!prepared.refusal.empty())
    parts_.reporter.report(Warning{prepared.refusal + ": workers start without --preload"});
}

// The job ends as a writer to a closed pipe does, unless a worker has failed.
void Agent::on_reader_lost() {
  if (stop_signal_ || report_.first_failure || !failed_.empty()) return;
  stop_signal_ = SIGPIPE;
  stopped_at_ = parts_.processes.now();
  parts_.reporter.report(Stopping{SIGPIPE, running_, plan_.shutdown_timeout});
}

// The report may arrive when the attempt has ended already.
void Agent::on_straggler(const Straggler& straggler) {
  if (is_running(straggler.attempt))
    parts_.reporter.report(StragglerFound{straggler.rank, straggler.other, straggler.slow, straggler.host});
}

bool Agent::is_running(int attempt) const {
  return attempt == attempt_ && !must_end() && running_ > 0;
}

void Agent::on_hang(const AgentEvent& event) {
  if (const auto* hung = std::get_if<Hung>(&event); hung != nullptr && is_running(hung->attempt))
    parts_.reporter.report(HangFound{hung->idle, hung->rank_states, plan_.hang.action, plan_.hang.watch});
  if (const auto* more = std::get_if<HangStacks>(&event); more != nullptr && is_running(more->attempt))
    parts_.reporter.report(HangStacksFound{more->text});
  if (const auto* all = std::get_if<HangExamined>(&event); all != nullptr && is_running(all->attempt))
    hung_ = plan_.hang.action != OnHang::report;
  if (const auto* idle = std::get_if<NodeIdle>(&event); idle != nullptr && is_running(idle->attempt))
    parts_.reporter.report(Warning{node_idle_text(*idle)});
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
  // SIGTERM in place of SIGPIPE, which Python ignores.
  const int signal = stop_signal_.value_or(SIGTERM);
  if (!kill_now_) signal_workers(signal == SIGPIPE ? SIGTERM : signal);
  // A stopped process handles the signal only when it is continued.
  if (!kill_now_ && (hung_ || suspended_)) signal_workers(SIGCONT);
  while (running_ > 0 && !kill_now_) {
    if (std::holds_alternative<TimeUp>(next_event(grace_end_))) break;
  }
  if (running_ > 0) kill_workers();
  while (running_ > 0) next_of_killed();
}

void Agent::kill_workers() {
  for (Worker& worker : workers_) worker.killed = worker.pid != 0 && !worker.status;
  signal_workers(SIGKILL);
  report_.killed_ranks = ranks_where([](const Worker& worker) { return worker.killed; });
  if (!supervisor_lost_) {
    parts_.reporter.report(Killed{report_.killed_ranks, plan_.shutdown_timeout, kill_now_});
  }
}

// The next event while processes that were killed end.
AgentEvent Agent::next_of_killed() {
  if (!look_at_killed_) look_at_killed_ = parts_.processes.now() + kLookAtKilled;
  AgentEvent event = next_event(look_at_killed_);
  if (std::holds_alternative<TimeUp>(event)) {
    look_at_killed_ = parts_.processes.now() + kLookAtKilled;
    warn_of_stuck();
  }
  return event;
}

// Each process once.
void Agent::warn_of_stuck() {
  for (const StuckProcess& process : parts_.processes.stuck_processes()) {
    if (!stuck_.insert(process.pid).second) continue;
    const auto worker = std::ranges::find(workers_, process.pid, &Worker::pid);
    const auto name = worker == workers_.end()
                          ? fmt::format("process {}", process.pid)
                          : fmt::format("rank {}", rank_of(static_cast<int>(worker - workers_.begin())));
    parts_.reporter.report(Warning{fmt::format("{} cannot be killed: it waits in the kernel{}", name,
                                               process.kernel.empty() ? "" : " (" + process.kernel + ")")});
  }
}

// Gives orphans of the workers the rest of the grace period, then kills until none is left.
void Agent::stop_orphans() {
  Processes& processes = parts_.processes;
  const auto grace = std::min<std::chrono::milliseconds>(plan_.shutdown_timeout, kMaxGraceOfOrphans);
  const TimePoint deadline = grace_end_.value_or(processes.now() + grace);
  bool waiting = !kill_now_ && processes.signal_orphans(SIGTERM);
  while (waiting && !kill_now_) {
    const AgentEvent event = next_event(deadline);
    if (std::holds_alternative<TimeUp>(event)) break;
    waiting = !std::holds_alternative<OrphansGone>(event);
  }
  while (processes.signal_orphans(SIGKILL)) {
    while (!std::holds_alternative<OrphansGone>(next_of_killed())) {
    }
  }
}

// Before workers have ended, for time may be short; newer states may follow.
void Agent::flush_while_running() {
  if (running_ > 0 && !kill_now_) begin_flush(Workers::running);
}

// One node has what all ranks share.
void Agent::begin_flush(Workers workers) {
  if (parts_.flush.begin && !flushing_ && round_.machine_rank == 0) flushing_ = parts_.flush.begin(workers);
}

void Agent::on_flush_ended(const FlushResult& result) {
  flushing_ = false;
  failed_flush_.reset();
  if (!result.problem.empty())
    failed_flush_ = result;
  else if (!result.empty())
    parts_.reporter.report(StateFlushed{result});
}

// Brings the newest state in memory to the disk, when no worker is left to replace it.
void Agent::flush_state() {
  workers_end_ = parts_.processes.now();
  wait_for_flush();
  const auto end = flush_end();
  if (!kill_now_ && (!end || parts_.processes.now() < *end)) begin_flush(Workers::ended);
  wait_for_flush();
  if (failed_flush_) parts_.reporter.report(StateFlushed{*failed_flush_});
}

void Agent::wait_for_flush() {
  const TimePoint telling = parts_.processes.now() + kSilentFlush;
  bool has_told = false;
  while (flushing_ && !kill_now_) {
    const auto end = flush_end();
    const bool tells = !has_told && (!end || telling < *end);
    if (!std::holds_alternative<TimeUp>(next_event(tells ? telling : end))) continue;
    if (!tells) break;
    parts_.reporter.report(StateFlushing{});
    has_told = true;
  }
  end_flush();
}

void Agent::end_flush() {
  if (flushing_) parts_.flush.interrupt();
  while (flushing_) next_event(std::nullopt);
}

// The grace of workers is that of acc, which an engine may kill soon after it. After a failure there is none.
std::optional<TimePoint> Agent::flush_end() const {
  if (!stop_signal_) return std::nullopt;
  return std::max<TimePoint>(stopped_at_ + plan_.shutdown_timeout, workers_end_ + kMinFlush);
}

// Before the next attempt, which removes the pages.
void Agent::note_progress() {
  const std::string prefix = parts_.logs.page_prefix(attempt_);
  if (plan_.restarts_without_progress == 0 || prefix.empty()) return;
  std::vector<Progress> ranks;
  for (int local_rank = 0; local_rank < plan_.nproc_per_node; ++local_rank) {
    if (workers_[static_cast<std::size_t>(local_rank)].pid == 0) continue;
    if (const auto page = ProgressPage::read_last(prefix + std::to_string(local_rank)))
      ranks.push_back(*page);
  }
  removed_folder_ = ranks.empty() ? removed_folder() : std::filesystem::path();
  reached_ = furthest(reached_, steps_reached(ranks));
  is_followed_ = is_followed_ || reached_.is_known;
}

// Of the folders by which workers say how far they are. A logout removes those of the user.
std::filesystem::path Agent::removed_folder() const {
  const auto folder = std::filesystem::path(parts_.logs.page_prefix(attempt_)).parent_path();
  if (!page_folder_ || file_id(folder) != page_folder_) return folder;
  const bool is_watched = parts_.watch_folder.empty() || file_id(parts_.watch_folder).has_value();
  return is_watched ? std::filesystem::path() : parts_.watch_folder;
}

// Where workers have said how far they are, one that ended before it said so has ended no step, unless it
// could not say so.
StepsReached Agent::tell_progress(bool restart) {
  StepsReached reached = reached_;
  reached.is_known = is_followed_ && removed_folder_.empty();
  if (!removed_folder_.empty()) {
    if (restart && !std::exchange(told_removed_folder_, true))
      parts_.reporter.report(
          Warning{"--restarts-without-progress has no effect while ranks cannot say how far they are: " +
                  removed_folder_.string() + " is missing; a logout may have removed it"});
    return reached;
  }
  if (plan_.restarts_without_progress > 0 && restart && !is_followed_ &&
      !std::exchange(told_not_followed_, true)) {
    parts_.reporter.report(
        Warning{"--restarts-without-progress has no effect while no rank here says how far it is "
                "(--watch, or acc.step in the script)"});
  }
  return reached;
}

WorkerFailure Agent::describe(int local_rank) const {
  const Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  WorkerFailure failure = {.rank = rank_of(local_rank),
                           .local_rank = plan_.output.first_local_rank + local_rank,
                           .pid = worker.pid,
                           .host = parts_.host,
                           .status = *worker.status,
                           .time = worker.end_time,
                           .attempt = attempt_,
                           .stderr_tail = parts_.processes.stderr_tail(local_rank)};
  const std::filesystem::path folder = log_folder();
  if (!folder.empty()) {
    failure.error_file = read_error_file(folder / std::to_string(local_rank) / "error.json");
    if (failure.error_file) failure.error_file->stays = parts_.logs.stays_after_failure();
  }
  return failure;
}

WorkerFailure Agent::find_cause() {
  std::vector<WorkerFailure> candidates;
  for (const int local_rank : failed_) candidates.push_back(describe(local_rank));
  const bool only_consequences = std::ranges::all_of(candidates, is_consequence);
  // A worker that was stopped while it was ending by its own exception can be the cause.
  for (int local_rank = 0; local_rank < plan_.nproc_per_node; ++local_rank) {
    const Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
    if (!worker.stopped || !worker.status || succeeded(*worker.status)) continue;
    WorkerFailure failure = describe(local_rank);
    const bool own_status = ended_by_itself(*worker.status);
    // Otherwise the signal was ours: use the exit code of an uncaught exception in Python.
    if (!own_status) failure.status = Exited{1};
    if (failure.error_file || (only_consequences && own_status)) candidates.push_back(std::move(failure));
  }
  WorkerFailure cause = candidates[find_root_cause(candidates)];
  cause.out_of_memory = cause.status == ExitStatus(Signaled{SIGKILL}) && oom_->has_killed();
  if (cause.out_of_memory) cause.cgroup_memory = oom_->memory();
  if (xids_) cause.xids = xids_->faults();
  report_.stopped_ranks = ranks_where([](const Worker& worker) { return worker.stopped; });
  std::erase(report_.stopped_ranks, cause.rank);
  report_.ended_ranks = ranks_where([&](const Worker& worker) {
    return worker.status && succeeded(*worker.status) && !worker.stopped && worker.end_time <= cause.time;
  });
  return cause;
}

// The workers that have failed only lost a peer. If that is a worker here, it closed its connections while it
// was ending, and has yet to say why: stopped now, it would take the cause with it.
void Agent::wait_for_local_cause() {
  const TimePoint deadline = parts_.processes.now() + kMaxWaitForCause;
  std::vector<WorkerFailure> consequences;
  const auto may_have_lost = [this](const WorkerFailure& failure) { return may_have_lost_running(failure); };
  for (std::size_t i = 0; i < failed_.size(); ++i) {
    consequences.push_back(describe(failed_[i]));
    if (!is_consequence(consequences.back())) return;
    // Of several, one may have lost another that has ended, and that one the cause.
    while (failed_.size() == i + 1 && std::ranges::any_of(consequences, may_have_lost) && !asked_to_end() &&
           !round_over_ && !hung_) {
      if (std::holds_alternative<TimeUp>(next_event(deadline))) return;
    }
  }
}

// Whether a worker here that has not ended may be what it lost.
bool Agent::may_have_lost_running(const WorkerFailure& failure) const {
  const std::vector<int> running =
      ranks_where([](const Worker& worker) { return worker.pid != 0 && !worker.status; });
  if (!failure.error_file || failure.error_file->lost_ranks.empty()) return !running.empty();
  return std::ranges::find_first_of(running, failure.error_file->lost_ranks) != running.end();
}

// The worker here only lost a peer: waits for another node's report of the cause.
void Agent::wait_for_remote_cause() {
  if (round_.num_machines == 1) return;
  const TimePoint deadline = parts_.processes.now() + kMaxWaitForCause;
  while (!round_over_ && !job_done_ && !asked_to_end()) {
    if (std::holds_alternative<TimeUp>(next_event(deadline))) return;
  }
}

std::vector<int> Agent::ranks_where(const std::function<bool(const Worker&)>& is_meant) const {
  std::vector<int> ranks;
  for (int local_rank = 0; local_rank < plan_.nproc_per_node; ++local_rank) {
    if (is_meant(workers_[static_cast<std::size_t>(local_rank)])) ranks.push_back(rank_of(local_rank));
  }
  return ranks;
}

bool Agent::is_own(const WorkerFailure& failure) const {
  const auto local_rank = static_cast<std::size_t>(index_of(failure));
  return failure.host == parts_.host && local_rank < workers_.size() &&
         workers_[local_rank].pid == failure.pid;
}

void Agent::report_finish() {
  if (auto& cause = report_.first_failure; cause && is_own(*cause)) {
    report_.own_failure = true;
    cause->just_above = parts_.processes.is_just_above(index_of(*cause));
  }
  note_end();
  if (const std::string lost = parts_.processes.lost_output(); !lost.empty()) {
    const bool succeeded = exit_code_of(report_) == 0;
    report_.output_lost = true;
    parts_.reporter.report(Warning{lost + (succeeded ? "; the exit code is 1 for that" : "")});
  }
  note_end();
  parts_.reporter.report(Finished{report_});
}

void Agent::note_end() {
  report_.stop_signal = stop_signal_;
  report_.preempted = is_preempted();
  report_.supervisor_lost = supervisor_lost_;
  report_.exit_code = exit_code_of(report_);
}

// When the job was asked to end, here or on another node; nullopt: it has ended otherwise.
std::optional<TimePoint> Agent::time_of_request() const {
  if (stop_signal_) return stopped_at_;
  const int others = report_.group_code.value_or(0);
  const bool is_code_of_request = others > 128 || (is_preempted() && others == kRequeueCode);
  const bool has_ended_otherwise = report_.first_failure || report_.hung || !round_over_;
  return is_code_of_request && !has_ended_otherwise ? std::optional(round_over_at_) : std::nullopt;
}

// A reader that does not read delays the end until a signal arrives, as that of any program. A job that was
// asked to end, on whichever node, does not wait for it longer than for its workers, and for one that is
// still reading then at most as long again.
void Agent::finish_output() {
  if (supervisor_lost_ || parts_.processes.finish_output()) return;
  std::optional<TimePoint> deadline;
  if (const auto asked = time_of_request())
    deadline =
        std::max<TimePoint>(*asked + plan_.shutdown_timeout, parts_.processes.now() + kMinTimeOfReader);
  const auto last = deadline.value_or(TimePoint()) + plan_.shutdown_timeout;
  std::uint64_t unread = parts_.processes.unread_output();
  const auto is_enough = [&] { return kill_now_ || (!deadline && stop_signal_); };
  while (!is_enough()) {
    const AgentEvent event = next_event(deadline);
    if (std::holds_alternative<OutputWritten>(event)) return;
    if (!std::holds_alternative<TimeUp>(event)) continue;
    const std::uint64_t unread_before = std::exchange(unread, parts_.processes.unread_output());
    const TimePoint now = parts_.processes.now();
    if (unread >= unread_before || now >= last) break;
    deadline = std::min<TimePoint>(now + kMinTimeOfReader, last);
  }
  const std::string lost = parts_.processes.drop_output();
  if (!lost.empty()) parts_.reporter.report(Warning{lost});
}

}  // namespace

bool is_on_cpu(const LaunchPlan& plan) {
  const std::string inherited = plan.inherited.get("ACCELERATE_USE_CPU");
  return parse_truth(plan.environment.get("ACCELERATE_USE_CPU", inherited)).value_or(false);
}

LaunchReport run(const LaunchPlan& plan, const JobParts& parts) {
  return Agent(plan, parts).run();
}

}  // namespace acc::launcher
