// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/launch.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/limit_hint.hpp"
#include "acc/base/log.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/stat_line.hpp"
#include "acc/base/subprocess/child_answer.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/control/control_server.hpp"
#include "acc/control/job_file.hpp"
#include "acc/control/stacks.hpp"
#include "acc/launch/agent.hpp"
#include "acc/launch/console.hpp"
#include "acc/launch/error_file.hpp"
#include "acc/launch/file_timer.hpp"
#include "acc/launch/fork_server.hpp"
#include "acc/launch/gpu_watch.hpp"
#include "acc/launch/guard.hpp"
#include "acc/launch/hang_watch.hpp"
#include "acc/launch/job_status.hpp"
#include "acc/launch/json_reporter.hpp"
#include "acc/launch/local_processes.hpp"
#include "acc/launch/log_file.hpp"
#include "acc/launch/masked_words.hpp"
#include "acc/launch/memory_folder.hpp"
#include "acc/launch/process_tree.hpp"
#include "acc/launch/progress_history.hpp"
#include "acc/launch/progress_watch.hpp"
#include "acc/launch/remote_ranks.hpp"
#include "acc/launch/reporter.hpp"
#include "acc/launch/state_flush.hpp"
#include "acc/launch/straggler_watch.hpp"
#include "acc/launch/terminal_loan.hpp"
#include "acc/launch/text_reporter.hpp"
#include "acc/launch/watch_folder.hpp"
#include "acc/plan/preemption.hpp"
#include "acc/plan/watch.hpp"
#include "acc/plan/worker_environment.hpp"
#include "acc/preflight/node_check.hpp"
#include "acc/rendezvous/cluster_node.hpp"
#include "acc/rendezvous/single_node.hpp"

namespace acc::launcher {
namespace {

// A c10d job of a single node uses the endpoint too: a replacement may join, or another node may be there
// already.
bool meets_others(const RendezvousPlan& wanted) {
  if (wanted.max_nodes > 1 || wanted.store_file) return true;
  if (wanted.backend != RendezvousKind::c10d || wanted.endpoint_host.empty()) return false;
  // Nothing is looked up: a single node has no namesake among the nodes of its job.
  return !wanted.is_host.value_or(names_this_machine(wanted.endpoint_host, {}, own_names()));
}

std::unique_ptr<Rendezvous> make_rendezvous(boost::asio::io_context& loop, const LaunchPlan& plan) {
  if (meets_others(plan.rendezvous)) return std::make_unique<ClusterNode>(loop, plan);
  return std::make_unique<SingleNode>(loop, plan);
}

// Of this node's ranks, for another node; a driver may block for longer.
constexpr auto kMeasurementTimeout = std::chrono::seconds(5);

// In a child, since debuggers take seconds and the job must not wait for them.
void show_stacks(const StackOptions& options, const JobView& job, Descriptor to) {
  run_in_child(std::move(to), [&](int connection) {
    write_stacks(job, options, [&](std::string_view text) {
      if (!write_all(connection, text)) ::_exit(1);
    });
  });
}

NodeCheckJob check_of(const LaunchPlan& plan, const Round& round, int attempt) {
  const std::string& endpoint = plan.rendezvous.endpoint_host;
  std::filesystem::path logs = plan.output.log_dir;
  if (logs.empty() || plan.output.no_logs) logs = temporary_folder(plan.inherited).value_or("/tmp");
  return {.round = round,
          .attempt = attempt,
          .workers = plan.nproc_per_node,
          .log_folder = absolute_path(logs).string(),
          .meeting_host = endpoint.empty() ? round.master_addr : endpoint,
          .environment = plan.inherited};
}

// Says where the output of the other ranks is while one is debugged.
std::string attached_text(const LaunchPlan& plan, const LogFolder& logs) {
  if (!plan.attach || plan.nproc_per_node == 1 || logs.run_folder().empty()) return {};
  return "rank " + std::to_string(*plan.attach) + " has the terminal, the others write to " +
         logs.run_folder().string();
}

// Where the caller of acc expects an error file: it may be torchrun or acc itself.
std::filesystem::path own_error_file(const LaunchPlan& plan) {
  return plan.inherited.get("TORCHELASTIC_ERROR_FILE");
}

// Warns of an error file that cannot be written, so that the exit code of the job stays.
void or_warn(Reporter& reporter, const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    reporter.report(Warning{error.what()});
  }
}

// Signals a process that missed a deadline, if it is a descendant: the file could name any process, and the
// one that set the deadline may have ended.
void signal_late_process(const TimerTable::Expired& expired, Reporter& reporter) {
  for (const Descendant& process : descendants_of(::getpid())) {
    if (process.pid != expired.pid || process_start(std::to_string(process.pid)) != expired.process_start)
      continue;
    reporter.report(Warning{fmt::format("process {} did not finish '{}' in time and gets {}", expired.pid,
                                        expired.scope, signal_name(expired.signal))});
    signal_descendant(process, expired.signal);
  }
}

// Tells a person what happens. The result of a preflight alone goes to standard output, where nothing else
// goes.
class PersonReporter : public Reporter {
 public:
  /// Sets `lost_result` when the result could not be written.
  PersonReporter(const LaunchPlan& plan, bool in_program, std::string host, bool& lost_result)
      : plan_(plan),
        in_program_(in_program),
        lost_result_(lost_result),
        text_(log::write_rendered, std::move(host), interpreter_text(plan)) {}

  void report(const Event& event) override {
    const auto* checked = std::get_if<PreflightFinished>(&event);
    if (checked != nullptr && plan_.preflight == Preflight::alone && !checked->result.json.empty())
      return write_result(checked->result);
    const auto* finished = std::get_if<Finished>(&event);
    if (finished == nullptr || !finished->report.first_failure || names_failure(finished->report))
      text_.report(event);
  }

 private:
  void write_result(const NodeCheckResult& result) const {
    const std::string text = plan_.preflight_json ? result.json + '\n' : result.text;
    if (write_all(STDOUT_FILENO, text)) return;
    log::write(log::Level::error, std::string("standard output: ") + std::strerror(errno));
    lost_result_ = true;
  }

  // Whether to say which worker failed. A host program says it itself, and the client of --hosts shows what
  // all nodes say.
  bool names_failure(const LaunchReport& report) const {
    return !in_program_ && (!plan_.has_client || report.own_failure);
  }

  const LaunchPlan& plan_;
  bool in_program_;
  bool& lost_result_;
  TextReporter text_;
};

// Whether an attempt has ended before the job did.
class RestartNote : public Reporter {
 public:
  explicit RestartNote(bool& has_restarted) : has_restarted_(has_restarted) {}

  void report(const Event& event) override {
    const auto* changed = std::get_if<GroupChanged>(&event);
    if (std::holds_alternative<Restarting>(event) || (changed != nullptr && changed->restart))
      has_restarted_ = true;
  }

 private:
  bool& has_restarted_;
};

// The reporters for the person and for programs.
void add_reporters(const LaunchPlan& plan, bool in_program, Output& output, Reporters& reporters,
                   bool& lost_result) {
  const std::string host = host_name();
  reporters.add(std::make_unique<PersonReporter>(plan, in_program, host, lost_result));
  if (plan.events_on_console) {
    reporters.add(std::make_unique<JsonReporter>(plan.run_id, host,
                                                 [&](std::string_view line) { output.announce(line); }));
  }
  for (const std::filesystem::path& path : {plan.event_log, plan.event_copy}) {
    if (path.empty()) continue;
    const std::string was_moved = "the event log " + path.string() + " was removed or renamed";
    const EventLogCallbacks callbacks = {
        .on_full =
            [](const std::string& reason) {
              log::write(log::Level::warn,
                         "the event log cannot be written: " + reason + "; acc keeps trying");
            },
        .on_replaced =
            [was_moved] {
              log::write(log::Level::warn, was_moved + "; acc goes on in a new file of this name");
            },
        .on_not_replaced =
            [was_moved](const std::string& reason) {
              log::write(log::Level::warn,
                         was_moved + " and cannot be made again: " + reason + "; lines go to the old file");
            }};
    const auto file = std::make_shared<EventLog>(path, callbacks);
    reporters.add(std::make_unique<JsonReporter>(plan.run_id, host,
                                                 [file](std::string_view line) { file->write(line); }));
  }
}

bool logs_events(const LaunchPlan& plan) {
  return plan.events_on_console || !plan.event_log.empty() || !plan.event_copy.empty();
}

JobStarted started_job(const LaunchPlan& plan) {
  JobStarted event = {.command = masked_words(plan.worker_command), .workers = plan.nproc_per_node};
  for (const auto& [name, setting] : plan.settings.all()) {
    if (setting.origin == "default") continue;
    event.settings[std::string(name)] = {masked_value(name, setting.value), setting.origin};
  }
  return event;
}

struct Supervisor {
  pid_t pid = 0;
  /// Becomes readable when it has ended.
  int exit_event = -1;
  /// Its limits of open files before it raised them.
  rlimit open_files = {};
};

// Where the files of jobs are, without what killed jobs have left.
std::vector<std::filesystem::path> folders_without_leftovers(const LaunchPlan& plan) {
  auto folders = runtime_folders(plan.inherited, ::geteuid());
  remove_leftovers(folders);
  return folders;
}

/// What the job leaves behind unless it is removed.
struct Leftovers {
  Leftovers(const LaunchPlan& plan, pid_t supervisor)
      : file(folders_without_leftovers(plan), job_id(plan.worker_command, supervisor)),
        logs(LogFolder::make(
            plan, [this](const std::filesystem::path& folder) { file.add(folder); },
            file.progress_folder())) {
    if (plan.watch) make_watch();
    if (plan.memory_checkpoints != 0) make_memory(plan);
  }

  JobFile file;
  LogFolder logs;
  /// Empty: there is none.
  std::filesystem::path watch = {};
  MemoryFolder memory = {};

  /// The logs of a failed job may be kept.
  void remove(bool logs_too = true) const {
    if (logs_too) logs.remove_temporary();
    logs.remove_pages();
    std::error_code ignored;
    if (!watch.empty()) std::filesystem::remove_all(watch, ignored);
    // Else the next acc tries again.
    if (memory.remove()) file.remove();
  }

 private:
  // A job that cannot have it is not started: what else was made is removed.
  void make_memory(const LaunchPlan& plan) {
    if (file.progress_folder().empty())
      log::write(
          log::Level::warn,
          "--memory-checkpoints: there is no folder for files of running jobs, so that nobody removes what "
          "is in memory if all of acc's processes are killed");
    try {
      memory = MemoryFolder::make(
          {.bytes = plan.memory_checkpoints, .origin = plan.settings.origin(key::memory_checkpoints)},
          [this](const std::filesystem::path& folder) { file.add(folder); });
    } catch (const Error&) {
      remove();
      throw;
    }
  }

  // The job runs without it, too.
  void make_watch() {
    const std::filesystem::path folder = file.watch_folder();
    try {
      if (folder.empty())
        throw Error({.kind = ErrorKind::system, .what = "there is no folder for files of running jobs"});
      file.add(folder);
      make_watch_folder(folder);
      watch = folder;
    } catch (const Error& error) {
      log::write(log::Level::warn, fmt::format("--watch has no effect: {}", error.what()));
    }
  }
};

// Makes the folder of --watch anew for the next workers if it has vanished: with the folders of a user who
// has logged out, say.
class WatchKeeper : public Reporter {
 public:
  explicit WatchKeeper(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void report(const Event& event) override {
    std::error_code ignored;
    if (folder_.empty() || !std::holds_alternative<AttemptStarted>(event) ||
        std::filesystem::exists(folder_, ignored))
      return;
    try {
      open_runtime_folder(folder_.parent_path(), true);
      make_watch_folder(folder_);
    } catch (const Error& error) {
      log::write(log::Level::warn, fmt::format("--watch has no effect any more: {}", error.what()));
      folder_.clear();
    }
  }

 private:
  std::filesystem::path folder_;
};

// Of a job that did not come to its end, as one without an agent.
class MemoryGuard {
 public:
  explicit MemoryGuard(const MemoryFolder& folder) : folder_(folder) {}
  ~MemoryGuard() {
    if (::getpid() == process_) folder_.remove();
  }
  MemoryGuard(const MemoryGuard&) = delete;
  MemoryGuard& operator=(const MemoryGuard&) = delete;

 private:
  const MemoryFolder& folder_;
  pid_t process_ = ::getpid();
};

// The variables that follow from what was made for the job. What an outer job has in memory is not its own.
void tell_workers(const Leftovers& leftovers, LaunchPlan& plan) {
  if (!leftovers.watch.empty())
    plan.environment.set("PYTHONPATH", watched_python_path(plan.inherited, leftovers.watch.string()));
  plan.inherited.erase("ACC_MEMORY_FOLDER");
  plan.inherited.erase("ACC_MEMORY_SIZE");
  if (leftovers.memory.path().empty()) return;
  plan.environment.set("ACC_MEMORY_FOLDER", leftovers.memory.path().string());
  plan.environment.set("ACC_MEMORY_SIZE", std::to_string(plan.memory_checkpoints));
}

/// What the parts of a running job share.
struct Job {
  const LaunchPlan& plan;
  const Leftovers& leftovers;
  Supervisor supervisor;
  const TerminalLoan* terminal;
  /// Null: `acc` itself.
  const HostProgram* program;
  boost::asio::io_context& loop;
  Output& output;
  Reporters& reporters;
  /// The result of a preflight alone could not be written.
  bool& lost_result;
  bool& has_restarted;

  /// Of a job that an error of acc ends: the logs of an attempt that failed before say why it did.
  bool keeps_logs() const { return has_restarted && leftovers.logs.stays_after_failure(); }
};

// Constructs it where it stays: what a loop or a callback knows does not move.
template <class Part, class... Arguments>
std::optional<Part> part_if(bool is_wanted, Arguments&&... arguments) {
  return is_wanted ? std::optional<Part>(std::in_place, std::forward<Arguments>(arguments)...) : std::nullopt;
}

/// The workers of this node, and what is known of them.
struct NodeWorkers {
  explicit NodeWorkers(const Job& running_job)
      : job(running_job),
        outside(part_if<HostPids>(job.plan.pid_namespace)),
        status(begun_view(), [this](int rank) { return job.output.destinations(rank); }),
        fork_server(part_if<ForkServer>(!job.plan.preload.empty(), job.loop, job.plan,
                                        job.program != nullptr ? job.program->python : std::nullopt)),
        processes(job.loop, job.output,
                  {.supervisor = job.supervisor.exit_event,
                   .additional_signals = handled_signals(job.plan),
                   .terminal = job.terminal,
                   .outside = outside ? &*outside : nullptr,
                   .start = job.program != nullptr ? job.program->start : execute,
                   .fork_server = fork_server ? &*fork_server : nullptr,
                   .open_files = job.supervisor.open_files}),
        timer(part_if<FileTimer>(
            !job.plan.timer_file.empty(), job.loop, job.plan.timer_file,
            [this](const TimerTable::Expired& expired) { signal_late_process(expired, job.reporters); })) {}

  /// Of the current attempt.
  std::string page_prefix() const { return job.leftovers.logs.page_prefix(status.view().attempt); }

  const Job& job;
  std::optional<HostPids> outside;
  JobStatus status;
  std::optional<ForkServer> fork_server;
  LocalProcesses processes;
  std::optional<FileTimer> timer;

 private:
  JobView begun_view() const {
    JobView begun = view_of(job.plan, job.supervisor.pid, outside ? outside->own() : ::getpid());
    begun.id = job.leftovers.file.id();
    return begun;
  }
};

/// What watches the workers, shows them to others and lets them control the job.
class JobWatches {
 public:
  JobWatches(NodeWorkers& workers, Rendezvous& rendezvous, const std::string& host);

  void add_to(Reporters& reporters);
  void end(int exit_code) { control_.end(exit_code); }

 private:
  RankHandlers rank_handlers();
  JobHandlers job_handlers();
  HangWatchParts hang_parts();

  // The job as it is now.
  JobView view() const;
  // Tells another node of this one's ranks.
  void measure(const std::function<void(std::string)>& done);

  StackOptions stack_options() const {
    return {.environment = workers_.job.plan.inherited, .page_prefix = workers_.page_prefix()};
  }
  std::function<const JobView&()> current_job() const {
    return [this]() -> const JobView& { return workers_.status.view(); };
  }
  std::function<std::optional<Progress>(int local_rank)> pages() const {
    return [this](int local_rank) { return read_page(workers_.page_prefix(), local_rank); };
  }
  std::function<void(AgentEvent)> to_agent() const {
    return [this](AgentEvent event) { workers_.processes.post(std::move(event)); };
  }

  NodeWorkers& workers_;
  Rendezvous& rendezvous_;
  StragglerWatch straggler_;
  ProgressHistory history_;
  ChildAnswer measurement_;
  RemoteRanks remote_;
  ControlServer control_;
  HangWatch hang_;
};

JobWatches::JobWatches(NodeWorkers& workers, Rendezvous& rendezvous, const std::string& host)
    : workers_(workers),
      rendezvous_(rendezvous),
      straggler_(workers.job.loop, workers.job.plan.nproc_per_node,
                 {.job = current_job(),
                  .progress = pages(),
                  .send = to_agent(),
                  .tell_progress = [this](const auto& ranks) { return rendezvous_.tell_progress(ranks); },
                  .tell_slow = [this](const auto& ranks) { rendezvous_.tell_slow(ranks); },
                  .host = host}),
      history_(workers.job.loop, workers.job.plan.nproc_per_node,
               {.job = current_job(), .progress = pages()}),
      measurement_(workers.job.loop),
      remote_(workers.job.loop,
              {.want = [this] { return rendezvous_.want_ranks(); },
               .report = [this](const std::string& ranks) { rendezvous_.report_ranks(ranks); },
               .measure = [this](const auto& done) { measure(done); },
               .host = host}),
      control_(workers.job.loop, runtime_folders(workers.job.plan.inherited, ::geteuid()),
               workers.status.view().id, job_handlers()),
      hang_(workers.job.loop, workers.job.plan.hang, hang_parts()) {
  control_.report_problem();
  rendezvous.on_ranks(rank_handlers());
  workers.job.output.on_growth([this] { control_.output_grew(); });
  workers.status.on_started([this](const RankView& rank) { control_.worker_started(rank); });
}

void JobWatches::add_to(Reporters& reporters) {
  reporters.add(hang_);
  reporters.add(straggler_);
  reporters.add(history_);
  reporters.add(remote_);
}

RankHandlers JobWatches::rank_handlers() {
  return {.progress = [this](const NodeProgress& node) { straggler_.on_progress(node); },
          .slow_ranks = [this](const auto& ranks) { straggler_.on_slow(ranks); },
          .ranks_wanted = [this] { remote_.on_wanted(); },
          .peers = [this](const auto& peers) { remote_.on_peers(peers); },
          .report = [this](const RankReport& node) { remote_.on_report(node); },
          .hang = [this](const JobHang& hang) { hang_.on_job_hang(hang); }};
}

JobHandlers JobWatches::job_handlers() {
  return {.view = [this] { return view(); },
          .stop =
              [this](bool now) {
                workers_.processes.post(SignalArrived{.signal = SIGTERM, .now = now, .of_job = true});
              },
          .output = [this](int rank) { return workers_.job.output.ring(rank); },
          .history = [this](int rank) { return history_.of(rank); },
          .write_stacks = [this](Descriptor to) { show_stacks(stack_options(), view(), std::move(to)); },
          .nodes = [this](auto answer) { remote_.ask(std::move(answer)); }};
}

HangWatchParts JobWatches::hang_parts() {
  return {.job = current_job(),
          .view = [this] { return view(); },
          .progress = pages(),
          .written = [this](int rank) { return workers_.job.output.written(rank); },
          .send = to_agent(),
          .stack_options = [this] { return stack_options(); },
          .tell_hang = [this](const NodeHang& hang) { return rendezvous_.tell_hang(hang); }};
}

JobView JobWatches::view() const {
  JobView shown = workers_.status.view();
  read_progress(shown, workers_.page_prefix());
  straggler_.mark(shown);
  shown.rendezvous = rendezvous_.state();
  shown.stops_alone = rendezvous_.stops_alone();
  if (workers_.fork_server) shown.importing = workers_.fork_server->importing();
  if (workers_.outside && shown.importing) {
    shown.importing->pid_inside = shown.importing->pid;
    shown.importing->pid = workers_.outside->of(shown.importing->pid_inside);
  }
  return shown;
}

void JobWatches::measure(const std::function<void(std::string)>& done) {
  // A child that a driver holds up is not joined by others.
  if (measurement_.is_waiting()) return done({});
  measurement_.ask([this](int to) { write_all(to, measured_ranks([this] { return view(); })); },
                   kMeasurementTimeout, [done](const ChildAnswer::Answer& answer) { done(answer.text); });
}

/// What follows the workers for the event log alone.
class LoggedWatches {
 public:
  LoggedWatches(const NodeWorkers& workers, Reporters& reporters)
      : progress_(part_if<ProgressWatch>(
            logs_events(workers.job.plan), workers.job.loop,
            ProgressWatchParts{
                .job = [&]() -> const JobView& { return workers.status.view(); },
                .progress = [&](int local_rank) { return read_last_page(workers.page_prefix(), local_rank); },
                .processes = [] { return ProcessTable::read(); },
                .note = [&](const ProgressNoted& event) { reporters.report(event); }})),
        gpus_(part_if<GpuWatch>(
            logs_events(workers.job.plan) && !is_on_cpu(workers.job.plan), workers.job.loop,
            GpuWatchParts{.job = [&]() -> const JobView& { return workers.status.view(); },
                          .processes = [] { return ProcessTable::read(); },
                          .note = [&](const GpuUseNoted& event) { workers.job.reporters.report(event); }})) {
    if (progress_) reporters.add(*progress_);
    if (gpus_) reporters.add(*gpus_);
  }

 private:
  std::optional<ProgressWatch> progress_;
  std::optional<GpuWatch> gpus_;
};

// The agent with its processes, and beside it what watches and controls the job.
LaunchReport run_agent(const Job& job) {
  const LaunchPlan& plan = job.plan;
  const std::string host = host_name();
  NodeWorkers workers(job);
  if (const std::string text = attached_text(plan, job.leftovers.logs); !text.empty())
    log::write(log::Level::info, text);
  const std::unique_ptr<Rendezvous> rendezvous = make_rendezvous(job.loop, plan);
  JobWatches watches(workers, *rendezvous, host);
  Reporters reporters;
  reporters.add(job.reporters);
  reporters.add(workers.status);
  watches.add_to(reporters);
  WatchKeeper watch_keeper(job.leftovers.watch);
  reporters.add(watch_keeper);
  const LoggedWatches logged(workers, reporters);
  std::optional<NodeCheck> preflight;
  if (plan.preflight != Preflight::none) preflight.emplace(job.loop);
  const auto check_nodes = [&](const Round& round, int attempt) {
    preflight->start(check_of(plan, round, attempt), [&](NodeCheckResult result) {
      workers.processes.post(NodesChecked{std::move(result)});
    });
  };
  std::optional<StateFlush> flush;
  if (const auto& memory = job.leftovers.memory.path(); !memory.empty())
    flush.emplace(job.loop, memory,
                  [&](const FlushResult& result) { workers.processes.post(FlushEnded{result}); });
  FlushParts flush_parts;
  if (flush)
    flush_parts = {.begin = [&](Workers survivors) { return flush->begin(survivors); },
                   .interrupt = [&] { flush->interrupt(); }};
  LaunchReport report = run(plan, {.processes = workers.processes,
                                   .rendezvous = *rendezvous,
                                   .reporter = reporters,
                                   .check_nodes = preflight ? CheckNodes(check_nodes) : nullptr,
                                   .flush = flush_parts,
                                   .logs = job.leftovers.logs,
                                   .watch_folder = job.leftovers.watch,
                                   .host = host});
  watches.end(report.exit_code);
  return report;
}

// Reports that acc itself could not go on, and cleans up. Returns the exit code.
int report_error(const Job& job, const std::exception& error, ErrorKind kind) {
  job.reporters.report(Failed{error.what(), exit_code(kind)});
  const auto file = own_error_file(job.plan);
  if (!file.empty())
    or_warn(job.reporters,
            [&] { replace_file(file, to_error_json(error.what(), "", std::chrono::system_clock::now())); });
  job.output.finish();
  job.leftovers.remove(!job.keeps_logs());
  return exit_code(kind);
}

// Runs the job and removes what it leaves. Throws what prevented its start or ended it.
LaunchReport finish(const Job& job) {
  const LaunchPlan& plan = job.plan;
  add_reporters(plan, job.program != nullptr, job.output, job.reporters, job.lost_result);
  job.reporters.add(std::make_unique<RestartNote>(job.has_restarted));
  if (logs_events(plan)) job.reporters.report(started_job(plan));
  LaunchReport report = run_agent(job);
  if (report.first_failure)
    or_warn(job.reporters, [&] { leave_error_file(own_error_file(plan), *report.first_failure); });
  if (job.lost_result && report.exit_code == 0) report.exit_code = exit_code(ErrorKind::system);
  job.leftovers.remove(!report.first_failure || !job.leftovers.logs.stays_after_failure());
  return report;
}

template <class Run>
auto with_job(const LaunchPlan& plan, const Leftovers& leftovers, const Supervisor& supervisor,
              const TerminalLoan* terminal, const HostProgram* program, Run run) {
  boost::asio::io_context loop(1);
  Output output(loop, plan.output, plan.nproc_per_node, {});
  const log::ConsoleRedirect console([&](std::string_view lines) { output.announce(lines); });
  Reporters reporters;
  bool lost_result = false;
  bool has_restarted = false;
  output.on_warning([&](const std::string& text) { reporters.report(Warning{text}); });
  return run(Job{plan, leftovers, supervisor, terminal, program, loop, output, reporters, lost_result,
                 has_restarted});
}

// Asio's own text names its sources.
Error without_sources(const boost::system::system_error& error) {
  return Error({.kind = ErrorKind::system,
                .what = "the event loop cannot be used: " + error.code().message(),
                .hint = limit_hint(error.code().value())});
}

int run_job(const LaunchPlan& plan, const Leftovers& leftovers, const Supervisor& supervisor,
            const TerminalLoan* terminal) try {
  return with_job(plan, leftovers, supervisor, terminal, nullptr, [](const Job& job) {
    try {
      return finish(job).exit_code;
    } catch (const Error& error) {
      return report_error(job, error, error.kind());
    } catch (const boost::system::system_error& error) {
      return report_error(job, without_sources(error), ErrorKind::system);
    } catch (const std::exception& error) {
      return report_error(job, error, ErrorKind::system);
    }
  });
} catch (const boost::system::system_error& error) {  // there is no event loop to report with
  log::write(log::Level::error, without_sources(error).what());
  leftovers.remove();
  return exit_code(ErrorKind::system);
}

// What this process writes is then not written, as on a full disk, where it exceeds `ulimit -f`. Workers get
// the default.
void ignore_file_size_signal() {
  ::signal(SIGXFSZ, SIG_IGN);
}

// With fewer open files than acc itself needs, what fails is up to chance.
void check_open_files() {
  constexpr rlim_t kNeeded = 20;
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max >= kNeeded) return;
  throw Error({.kind = ErrorKind::system,
               .what = fmt::format("only {} files may be open; acc needs {}, and three for each worker",
                                   files.rlim_max, kNeeded),
               .hint = limit_hint(EMFILE)});
}

// guard(), which throws when there is no agent: then nobody else cleans up.
GuardReport start_guarded(const std::function<int(int)>& agent, const std::function<void()>& clean_up,
                          const GuardOptions& options) {
  try {
    return guard(agent, clean_up, options);
  } catch (const Error&) {
    clean_up();
    throw;
  }
}

// Reports that the agent itself was killed.
int report_lost_agent(const ExitStatus& agent) {
  boost::asio::io_context loop(1);
  Output output(loop, {}, 1, {});
  const log::ConsoleRedirect console([&](std::string_view lines) { output.announce(lines); });
  log::write(log::Level::error, "its agent was ended by " + to_string(agent) + "; all workers were killed");
  output.finish();
  return shell_code(agent);
}

// For torchrun's nodes an int of 32 bits, with room for counting on.
std::int64_t draw_local_id() {
  constexpr std::uint32_t kFirst = std::uint32_t{1} << 29U;
  return kFirst + random_number() % kFirst;
}

}  // namespace

int launch(LaunchPlan plan) {
  ignore_file_size_signal();
  open_standard_streams();
  check_open_files();
  const rlimit open_files = raise_open_files();
  const pid_t supervisor = plan.process = ::getpid();
  plan.local_id = draw_local_id();
  std::optional<TerminalLoan> terminal;
  if (plan.attach)
    terminal.emplace(STDIN_FILENO);
  else
    leave_terminal_in_background(STDIN_FILENO);
  const Leftovers leftovers(plan, supervisor);
  const MemoryGuard memory(leftovers.memory);
  tell_workers(leftovers, plan);
  const TerminalLoan* lent = terminal ? &*terminal : nullptr;
  const auto clean_up = [&] {
    leftovers.file.remove_socket();
    leftovers.remove();
  };
  const GuardReport report = start_guarded(
      [&](int exit_event) { return run_job(plan, leftovers, {supervisor, exit_event, open_files}, lent); },
      clean_up,
      {.in_session = plan.attach.has_value(),
       .pid_namespace = plan.pid_namespace,
       .additional_signals = handled_signals(plan)});
  // In case the agent was killed before it could.
  if (terminal) terminal->take_back(0);
  if (std::holds_alternative<Exited>(report.agent)) return shell_code(report.agent);
  return report_lost_agent(report.agent);
}

LaunchReport run_for_program(const LaunchPlan& original, const HostProgram& program) {
  ignore_file_size_signal();
  open_standard_streams();
  LaunchPlan plan = original;
  plan.process = program.pid;
  plan.local_id = draw_local_id();
  const Leftovers leftovers(plan, program.pid);
  const MemoryGuard memory(leftovers.memory);
  tell_workers(leftovers, plan);
  bool keeps_logs = false;
  try {
    return with_job(plan, leftovers, {program.pid, program.exit_event, raise_open_files()}, nullptr, &program,
                    [&](const Job& job) {
                      try {
                        return finish(job);
                      } catch (...) {
                        keeps_logs = job.keeps_logs();
                        job.output.finish();
                        throw;
                      }
                    });
  } catch (...) {
    leftovers.remove(!keeps_logs);
    throw;
  }
}

}  // namespace acc::launcher
