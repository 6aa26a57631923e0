// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <utility>

#include "acc/base/error.hpp"

namespace acc::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using TimePoint = Processes::TimePoint;
using Kind = Disturbance::Kind;

constexpr TimePoint kStart = TimePoint(std::chrono::hours(1));
constexpr std::chrono::system_clock::time_point kStartOfClock{std::chrono::seconds(1'700'000'000)};
/// After this the user loses patience: what hangs until then may do so.
constexpr auto kPatience = std::chrono::hours(1);
/// An execution has some hundred events.
constexpr int kMaxEvents = 20'000;
/// The local rank of a worker of another node.
constexpr int kElsewhere = -1;
/// How long a killed process takes to end, at most, and what it takes to hear of that.
constexpr auto kDeath = 5ms;
/// What has closed its connections ends within this, as a rule.
constexpr milliseconds kSlowEnd = 1500ms;
/// A signal that follows within this is the first one's copy.
constexpr auto kAtOnce = 100ms;
/// How long those who lost a peer end nobody, since the peer may yet say why it ended.
constexpr auto kWaitForCause = 2s;
/// Nothing of a job is alive this long after its supervisor was killed.
constexpr auto kEndWithoutSupervisor = 1s;
/// The other nodes, the disk and the reader of the output answer within this.
constexpr auto kAnswer = 4000ms;

constexpr const char* kLostPeer = "RuntimeError: Connection closed by peer [127.0.0.1]:4242\n";
constexpr const char* kOtherHost = "node1";

bool is_stop(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

/// A process of this attempt, or one that it left.
struct Process {
  enum class Obedience { ends, exits, deaf };
  /// What becomes of its error file: libacc's, torch's, half of one, or one that a child writes after its
  /// end.
  enum class Record { none, exact, of_torch, torn, late };

  bool alive = true;
  bool stopped = false;
  /// When it ends, and how; absent: not by itself. While it is stopped `remaining` is what it would still
  /// need.
  std::optional<TimePoint> end = {};
  std::optional<milliseconds> remaining = {};
  ExitStatus status = {};
  /// Its end has been drawn already as a failure of its own, and the connections are closed.
  bool is_failing = false;
  bool lost_peer = false;
  /// The local rank of that peer.
  int lost = kElsewhere;
  std::filesystem::path error_file = {};
  Record record = Record::none;
  /// When it wrote a whole error file, as that says; absent: never.
  std::optional<std::chrono::system_clock::time_point> recorded = {};
  Obedience obedience = Obedience::ends;
  milliseconds reaction = {};
  bool term_pending = false;
  std::set<int> signals = {};
  bool was_asked = false;
  bool was_killed = false;
  /// Since when it handles notices; absent: never.
  std::optional<TimePoint> handler = {};
  bool notice_ends = false;
  std::optional<TimePoint> noticed = {};
  TimePoint died = {};
  std::string late_record = {};
};

class Job : public Processes, public Rendezvous {
 public:
  explicit Job(const Schedule& schedule)
      : schedule_(schedule), logs_(LogFolder::make(schedule.plan)), draw_(schedule.seed, 1) {
    for (const Disturbance& one : schedule.disturbances) at(kStart + one.time, [this, one] { disturb(one); });
    at(kStart + kPatience,
       [this] { deliver(SignalArrived{SIGTERM, Receiver::supervisor}, "the user loses patience"); });
  }

  ~Job() override { logs_.remove_temporary(); }

  std::vector<std::string> run();

  // Processes.
  bool prepare() override;
  StartedWorker start(WorkerStart worker) override;
  void signal(int local_rank, int signal) override;
  bool signal_if_handled(int local_rank, int signal) override;
  bool signal_orphans(int signal) override;
  AgentEvent next(std::optional<TimePoint> deadline) override;
  void post(AgentEvent event) override { delivered_.push_back(std::move(event)); }
  TimePoint now() const override { return now_; }
  void end_attempt() override;
  std::string stderr_tail(int local_rank) override {
    return workers_.at(local_rank).lost_peer ? kLostPeer : "ValueError: no such file\n";
  }
  bool is_just_above(int) override { return false; }
  std::string lost_output() override { return {}; }
  bool finish_output() override;
  std::uint64_t unread_output() override { return 0; }
  std::string drop_output() override { return {}; }

  // Rendezvous.
  void join() override;
  void fail(const RoundOver& failure) override;
  void finish() override;
  void announce_end(int signal) override;
  void stop_job(int code) override;
  void leave(const std::string& reason, int code) override;

 private:
  struct Reports : Reporter {
    explicit Reports(Job& job) : job_(job) {}
    void report(const Event& event) override { job_.on_report(event); }
    Job& job_;
  };
  friend struct Reports;

  // The agent cleans up after an exception, which may violate more.
  void require(bool holds, const std::string& promise, const std::string& detail = {}) const {
    if (holds) return;
    if (violated_.empty()) violated_ = promise;
    throw Violation(violated_, detail.empty() ? violated_ : fmt::format("{}: {}", violated_, detail));
  }
  void trace(const std::string& line) {
    trace_.push_back(
        fmt::format("{:>9} ms  {}", std::chrono::duration_cast<milliseconds>(now_ - kStart).count(), line));
  }
  std::string story() const {
    std::string text = fmt::format("\nseed {}", schedule_.seed);
    for (const std::string& line : trace_) text += "\n" + line;
    return text;
  }
  void at(TimePoint time, std::function<void()> action) { agenda_.emplace(time, std::move(action)); }
  void deliver(AgentEvent event, const std::string& line) {
    trace(line);
    delivered_.push_back(std::move(event));
  }
  void tell(NodeEvent event, const std::string& line, milliseconds after);

  void disturb(const Disturbance& one);
  void ask(const Disturbance& one);
  void end_later(int local_rank, Process& process, milliseconds after, ExitStatus status);
  void obey(int local_rank, Process& process, int signal);
  void react_to_failure(int failing);
  void record_failure(int local_rank, Process& process);
  std::string error_json(const Process& process) const;
  void write_error_file(int local_rank, const std::filesystem::path& file, const std::string& text);
  int first_rank() const;
  int rank_of(int local_rank) const;
  std::chrono::system_clock::time_point wall_clock() const { return kStartOfClock + (now_ - kStart); }
  void die(int local_rank);
  void pass_until(TimePoint time);
  void check_urgency(TimePoint time) const;
  void check_reason_to_stop() const;
  void check_suspension() const;
  void check_death(int local_rank, const Process& process) const;
  void on_report(const Event& event);
  void on_taken(const AgentEvent& event);
  void on_end_taken(const WorkerEnded& ended);
  void on_signal_taken(const SignalArrived& arrived);
  bool is_copy(const SignalArrived& arrived);
  void check_cause(const WorkerFailure& cause) const;
  void check_cause_among_losses(const WorkerFailure& cause) const;
  void check_end(const LaunchReport& report) const;
  int expected_code(const LaunchReport& report) const;
  bool verdict_of_group(const RoundOver& verdict, const std::string& line, milliseconds after);

  const Schedule& schedule_;
  const LogFolder logs_;
  Draw draw_;
  TimePoint now_ = kStart;
  std::multimap<TimePoint, std::function<void()>> agenda_ = {};
  std::deque<AgentEvent> delivered_ = {};
  std::vector<std::string> trace_ = {};
  int events_ = 0;
  mutable std::string violated_ = {};

  int attempts_ = 0;
  bool is_attempt_over_ = true;
  std::map<int, Process> workers_ = {};
  std::vector<Process> orphans_ = {};
  bool preparing_ = false;
  int check_ = 0;
  int passed_check_ = 0;
  bool flushing_ = false;
  int flush_ = 0;
  bool suspended_ = false;

  // The round, as the nodes know it.
  bool joined_ = false;
  bool in_round_ = false;
  bool told_ = false;  // the agent has said how its workers ended
  bool left_ = false;
  int restarts_ = 0;

  // What the agent has taken.
  std::optional<int> stop_signal_ = {};
  TimePoint stop_time_ = {};
  std::set<Receiver> stop_receivers_ = {};
  bool stopped_by_user_ = false;
  bool impatient_ = false;
  std::optional<TimePoint> supervisor_lost_ = {};
  bool hang_taken_ = false;
  bool noticed_ = false;
  std::optional<TimePoint> notice_time_ = {};
  std::optional<RoundOver> verdict_ = {};
  // A worker elsewhere has failed, and takes this long to end; the verdict is to come.
  std::optional<milliseconds> others_end_ = {};
  int group_code_ = 0;  // of a verdict that came before the request to end
  bool job_done_ = false;

  // The attempt.
  std::optional<TimePoint> asked_ = {};  // its workers were first asked to end
  std::vector<int> own_failures_ = {};   // in the order in which connections were closed
  bool hung_ = false;
  bool has_failed_ = false;                   // a worker, as the agent knows
  std::optional<TimePoint> first_loss_ = {};  // when the agent heard of the first that had lost a peer
  std::vector<int> losses_ = {};              // the ranks that had lost a peer, as far as it has heard
  bool has_own_failure_ = false;              // it has heard of one that failed by itself
};

std::vector<std::string> Job::run() {
  Reports reports(*this);
  JobParts parts{.processes = *this, .rendezvous = *this, .reporter = reports};
  parts.cgroups = {.membership = "/nonexistent", .root = "/nonexistent"};
  parts.kernel_log = {};
  parts.logs = logs_;
  if (schedule_.has_checks) {
    parts.check_nodes = [this](const Round&, int) {
      const bool passes = draw_.chance(80);
      const milliseconds takes = draw_.milliseconds(0, draw_.chance(30) ? 8000 : 3000);
      // Those of an earlier round are given up, but may have come to a result before.
      at(now_ + takes, [this, passes, number = ++check_] {
        if (number != check_) return;
        if (passes) passed_check_ = number;
        deliver(NodesChecked{{.passed = passes,
                              .summary = passes ? "" : "a node failed its checks",
                              .text = fmt::format("{}", number)}},
                passes ? "the nodes pass their checks" : "a node fails its checks");
      });
    };
  }
  if (schedule_.has_states) {
    parts.flush.begin = [this](Workers) {
      require(!flushing_, "one copy of the state at a time");
      if (draw_.chance(30)) return false;
      flushing_ = true;
      at(now_ + draw_.milliseconds(0, 20'000), [this, number = ++flush_] {
        if (!flushing_ || number != flush_) return;
        flushing_ = false;
        deliver(FlushEnded{}, "the state is on the disk");
      });
      return true;
    };
    parts.flush.interrupt = [this] {
      at(now_ + draw_.milliseconds(0, 900), [this, number = flush_] {
        if (!flushing_ || number != flush_) return;
        flushing_ = false;
        deliver(FlushEnded{{.problem = "interrupted"}}, "the copy is interrupted");
      });
    };
  }
  try {
    const LaunchReport report = launcher::run(schedule_.plan, parts);
    trace(fmt::format("acc ends with {}", report.exit_code));
    check_end(report);
  } catch (const Violation& violation) {
    throw Violation(violation.promise, violation.what() + story());
  } catch (const std::exception& error) {
    throw Violation("the agent throws nothing", error.what() + story());
  }
  return std::move(trace_);
}

// ---- Time ----

AgentEvent Job::next(std::optional<TimePoint> deadline) {
  require(++events_ < kMaxEvents, "the agent comes to an end");
  check_suspension();
  while (delivered_.empty()) {
    if (agenda_.empty() || (deadline && agenda_.begin()->first > *deadline)) {
      require(deadline.has_value(), "the agent waits for nothing that never comes");
      pass_until(*deadline);
      return TimeUp{};
    }
    auto entry = agenda_.extract(agenda_.begin());
    pass_until(entry.key());
    entry.mapped()();
  }
  AgentEvent event = std::move(delivered_.front());
  delivered_.pop_front();
  on_taken(event);
  return event;
}

void Job::pass_until(TimePoint time) {
  if (time <= now_) return;
  check_urgency(time);
  now_ = time;
}

// What is to be done now is done before time passes.
void Job::check_urgency(TimePoint time) const {
  if (!stop_signal_ && !supervisor_lost_) return;
  const bool is_over = supervisor_lost_ && time > *supervisor_lost_ + kEndWithoutSupervisor;
  for (const auto& [rank, process] : workers_) {
    if (!process.alive) continue;
    require(!supervisor_lost_ || process.was_killed,
            "workers are killed at once when the supervisor is lost");
    require(!impatient_ || process.was_killed, "a second signal kills the workers at once");
    const int signal = stop_signal_ == SIGPIPE ? SIGTERM : stop_signal_.value_or(SIGKILL);
    require(process.was_killed || process.signals.contains(signal), "a signal is passed to every worker");
    require(!is_over, "no worker is alive a second after the supervisor's end");
  }
  require(!is_over || std::ranges::none_of(orphans_, &Process::alive),
          "no orphan is alive a second after the supervisor's end");
}

// ---- Workers ----

bool Job::prepare() {
  if (!draw_.chance(20)) return false;
  if (std::exchange(preparing_, true)) return true;
  const bool is_refused = draw_.chance(20);
  at(now_ + draw_.milliseconds(0, 5000), [this, is_refused] {
    preparing_ = false;
    deliver(Prepared{is_refused ? "torch cannot be imported" : ""}, "workers are prepared");
  });
  return true;
}

StartedWorker Job::start(WorkerStart worker) {
  const int local_rank = worker.local_rank;
  if (local_rank == 0) {
    ++attempts_;
    is_attempt_over_ = false;
    for (const auto& [rank, process] : workers_) require(!process.alive, "no worker outlives its attempt");
    require(std::ranges::none_of(orphans_, &Process::alive),
            "nothing of an attempt is left when the next one begins");
    workers_.clear();
    asked_.reset();
    own_failures_.clear();
    hung_ = false;
    first_loss_.reset();
    losses_.clear();
    has_own_failure_ = false;
  }
  require(!schedule_.has_checks || passed_check_ == check_,
          "workers start when the nodes of their round have passed the checks");
  require((in_round_ || others_end_) && !verdict_, "workers start in a round that goes on");
  require(!stop_signal_ && !supervisor_lost_, "no worker starts once the job is to end");
  require(!workers_.contains(local_rank), "a worker starts once in each attempt");
  require(!left_, "a node that has left starts nothing");
  Draw draw(schedule_.seed, 2, static_cast<std::uint64_t>(attempts_ * 64 + local_rank));
  Process& process = workers_[local_rank];
  process.obedience =
      std::array{Process::Obedience::ends, Process::Obedience::ends, Process::Obedience::exits,
                 Process::Obedience::deaf}[static_cast<std::size_t>(draw.below(4))];
  process.reaction = draw.milliseconds(0, draw.chance(20) ? 60'000 : 500);
  if (draw.chance(60)) process.handler = now_ + draw.milliseconds(0, 6000);
  process.notice_ends = draw.chance(15);
  if (!worker.folder.empty()) {
    process.error_file = worker.folder / "error.json";
    // Of one library, as a rule.
    Draw common(schedule_.seed, 3);
    process.record = static_cast<Process::Record>((common.chance(60) ? common : draw).below(5));
    require(std::filesystem::is_directory(worker.folder) && std::filesystem::is_empty(worker.folder),
            "a worker finds nothing of an earlier attempt");
  }
  trace(fmt::format("worker {} starts, attempt {}", local_rank, attempts_));
  if (draw.chance(1)) deliver(SignalArrived{SIGTERM, Receiver::agent}, "SIGTERM while workers start");
  milliseconds lasts = draw.milliseconds(0, 30'000);
  // What ends one may end others at the same time.
  if (Draw common(schedule_.seed, 4, static_cast<std::uint64_t>(attempts_)); common.chance(15))
    lasts = common.milliseconds(0, 30'000) + draw.milliseconds(0, 500);
  const int fate = draw.below(10);
  if (fate < 5) {
    end_later(local_rank, process, lasts, Exited{0});
  } else if (fate < 9) {
    // It closes its connections, and ends a little later.
    const ExitStatus status =
        draw.chance(50) ? ExitStatus(Exited{2 + draw.below(100)}) : ExitStatus(Signaled{SIGSEGV});
    const milliseconds slow = draw.milliseconds(0, static_cast<int>(kSlowEnd.count()));
    at(now_ + lasts, [this, local_rank, status, slow, attempt = attempts_] {
      if (attempt != attempts_) return;
      Process& failing = workers_.at(local_rank);
      // What stands still cannot fail; it does when it goes on.
      if (!failing.alive || failing.was_asked || failing.lost_peer || failing.stopped) return;
      failing.is_failing = true;
      trace(fmt::format("worker {} fails", local_rank));
      record_failure(local_rank, failing);
      end_later(local_rank, failing, slow, status);
      own_failures_.push_back(local_rank);
      react_to_failure(local_rank);
    });
  }  // else it hangs
  return {.pid = 1000 * attempts_ + local_rank};
}

void Job::end_later(int local_rank, Process& process, milliseconds after, ExitStatus status) {
  if (process.stopped) {
    if (!process.remaining || *process.remaining > after) {
      process.remaining = after;
      process.status = status;
    }
    return;
  }
  const TimePoint end = now_ + after;
  if (process.end && *process.end <= end) return;
  process.end = end;
  process.status = status;
  at(end, [this, local_rank, end, attempt = attempts_] {
    if (attempt != attempts_) return;
    const Process& ending = workers_.at(local_rank);
    if (ending.alive && ending.end == end) die(local_rank);
  });
}

// Its peers lose their connections to it, and some of them end before it does.
void Job::react_to_failure(int failing) {
  for (auto& [rank, peer] : workers_) {
    if (rank == failing || !peer.alive || peer.is_failing || peer.was_asked || !draw_.chance(60)) continue;
    at(now_ + draw_.milliseconds(0, static_cast<int>(kSlowEnd.count())),
       [this, failing, rank = rank, attempt = attempts_] {
         if (attempt != attempts_) return;
         Process& losing = workers_.at(rank);
         if (!losing.alive || losing.is_failing || losing.was_asked || losing.stopped) return;
         if (std::exchange(losing.lost_peer, true)) return;
         losing.lost = failing;
         record_failure(rank, losing);
         end_later(rank, losing, 0ms, Exited{1});
         react_to_failure(rank);
       });
  }
}

// As the exception ends its script, some time before the process ends.
void Job::record_failure(int local_rank, Process& process) {
  using Record = Process::Record;
  if (process.record == Record::none) return;
  const std::string text = error_json(process);
  if (process.record == Record::late) {
    process.late_record = text;
  } else if (process.record == Record::torn) {
    const int length = 1 + draw_.below(static_cast<int>(text.size()) - 1);
    write_error_file(local_rank, process.error_file, text.substr(0, static_cast<std::size_t>(length)));
  } else {
    process.recorded = wall_clock();
    write_error_file(local_rank, process.error_file, text);
  }
}

// libacc says that it is a consequence, and of whom; torch's record only has the message of the exception.
std::string Job::error_json(const Process& process) const {
  if (process.record == Process::Record::of_torch)
    return to_error_json(process.lost_peer ? kLostPeer : "ValueError: no such file", "", wall_clock());
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(wall_clock().time_since_epoch());
  std::string extra =
      fmt::format(R"("timestamp": "{}", "timestamp_us": "{}")", time.count() / 1'000'000, time.count());
  if (process.lost_peer)
    extra += fmt::format(R"(, "consequence": true, "lost_ranks": [{}])", rank_of(process.lost));
  return fmt::format(R"({{"message": {{"message": "{}", "extraInfo": {{{}}}}}}})",
                     process.lost_peer ? "all_reduce failed" : "ValueError: no such file", extra);
}

void Job::write_error_file(int local_rank, const std::filesystem::path& file, const std::string& text) {
  trace(fmt::format("worker {} leaves in its error file {}", local_rank, text));
  std::ofstream(file) << text;
}

int Job::first_rank() const {
  return schedule_.num_machines > 1 && schedule_.seed % 2 == 1 ? schedule_.plan.nproc_per_node : 0;
}

int Job::rank_of(int local_rank) const {
  if (local_rank != kElsewhere) return first_rank() + local_rank;
  return first_rank() == 0 ? schedule_.plan.nproc_per_node : 0;
}

void Job::die(int local_rank) {
  Process& process = workers_.at(local_rank);
  process.alive = false;
  process.died = now_;
  trace(fmt::format("worker {} has ended with {}", local_rank, launcher::to_string(process.status)));
  check_death(local_rank, process);
  const int orphans = draw_.chance(15) ? 1 + draw_.below(3) : 0;
  for (int i = 0; i < orphans; ++i) {
    Process orphan;
    orphan.obedience = draw_.chance(30) ? Process::Obedience::deaf : Process::Obedience::ends;
    orphan.reaction = draw_.milliseconds(0, 3000);
    orphans_.push_back(orphan);
  }
  if (!process.late_record.empty()) {
    at(now_ + draw_.milliseconds(0, 60),
       [this, local_rank, file = process.error_file, text = process.late_record, attempt = attempts_] {
         // Nobody is left to write it when the attempt is over.
         if (attempt == attempts_ && !is_attempt_over_) write_error_file(local_rank, file, text);
       });
  }
  const WorkerEnded ended{local_rank, process.status, wall_clock()};
  at(now_ + draw_.milliseconds(0, 3), [this, ended] { delivered_.push_back(ended); });
}

void Job::check_death(int local_rank, const Process& process) const {
  if (asked_ && !process.was_killed)
    require(now_ - *asked_ <= schedule_.plan.shutdown_timeout + kDeath,
            "workers end within the grace, or are killed");
  // Whoever handles a notice hears of it, within a second.
  if (!notice_time_ || !process.handler || asked_ || verdict_ || stop_signal_ || hung_ || has_failed_ ||
      process.noticed)
    return;
  const TimePoint known = std::max(*notice_time_, *process.handler);
  require(now_ - known <= 1s + 10ms || process.stopped || suspended_, "who handles a notice hears of it",
          fmt::format("worker {}", local_rank));
}

void Job::obey(int local_rank, Process& process, int signal) {
  process.was_asked = true;
  switch (process.obedience) {
    case Process::Obedience::ends:
      if (!process.is_failing) end_later(local_rank, process, process.reaction, Signaled{signal});
      break;
    case Process::Obedience::exits:
      if (!process.is_failing) end_later(local_rank, process, process.reaction, Exited{128 + signal});
      break;
    case Process::Obedience::deaf:
      break;
  }
}

void Job::signal(int local_rank, int signal) {
  Process& process = workers_.at(local_rank);
  if (!process.alive || process.was_killed) return;
  trace(fmt::format("worker {} gets {}", local_rank, signal_name(signal)));
  process.signals.insert(signal);
  if (signal == SIGSTOP) {
    if (std::exchange(process.stopped, true)) return;
    if (process.end)
      process.remaining =
          std::chrono::duration_cast<milliseconds>(*std::exchange(process.end, std::nullopt) - now_);
  } else if (signal == SIGCONT) {
    if (!std::exchange(process.stopped, false)) return;
    if (process.remaining)
      end_later(local_rank, process, *std::exchange(process.remaining, std::nullopt), process.status);
    if (std::exchange(process.term_pending, false)) obey(local_rank, process, SIGTERM);
  } else if (signal == SIGKILL) {
    check_reason_to_stop();
    const bool is_late = asked_ && now_ - *asked_ >= schedule_.plan.shutdown_timeout;
    require(is_late || impatient_ || supervisor_lost_, "nobody is killed before the grace is over");
    process.was_killed = true;
    process.stopped = false;
    end_later(local_rank, process, draw_.milliseconds(0, static_cast<int>(kDeath.count())),
              Signaled{SIGKILL});
  } else if (is_stop(signal)) {
    check_reason_to_stop();
    if (!asked_) asked_ = now_;
    if (process.stopped)
      process.term_pending = true;
    else
      obey(local_rank, process, signal);
  }
}

void Job::check_reason_to_stop() const {
  const bool must_not_hang = hung_ && schedule_.plan.hang.action != OnHang::report;
  if (asked_ || stop_signal_ || supervisor_lost_ || verdict_ || job_done_ || must_not_hang) return;
  require(has_failed_, "workers are asked to end for a reason");
  // Who only lost a peer ends nobody while that one, which has closed its connections, may yet say why.
  if (!first_loss_ || has_own_failure_ || now_ - *first_loss_ >= kWaitForCause) return;
  for (const auto& [rank, process] : workers_) {
    const bool is_waited_for = std::ranges::any_of(losses_, [&, rank = rank](int loser) {
      const Process& one = workers_.at(loser);
      const bool says_whom = one.recorded && one.record == Process::Record::exact;
      return !says_whom || one.lost == rank;
    });
    require(!process.alive || !process.is_failing || !is_waited_for,
            "the worker that fails by itself has the time to end");
  }
}

bool Job::signal_if_handled(int local_rank, int signal) {
  Process& process = workers_.at(local_rank);
  if (!process.handler || *process.handler > now_ || !process.alive) return false;
  trace(fmt::format("worker {} hears {}", local_rank, signal_name(signal)));
  if (!process.noticed) process.noticed = now_;
  if (process.notice_ends && !process.is_failing) {
    process.was_asked = true;
    end_later(local_rank, process, 100ms, Signaled{signal});
  }
  return true;
}

bool Job::signal_orphans(int signal) {
  for (const auto& [rank, process] : workers_)
    require(!process.alive, "orphans are looked for when the workers have ended");
  std::erase_if(delivered_, [](const AgentEvent& one) { return std::holds_alternative<OrphansGone>(one); });
  if (std::ranges::none_of(orphans_, &Process::alive)) return false;
  trace(fmt::format("orphans get {}", signal_name(signal)));
  for (std::size_t i = 0; i < orphans_.size(); ++i) {
    if (!orphans_[i].alive || (signal != SIGKILL && orphans_[i].obedience == Process::Obedience::deaf))
      continue;
    at(now_ + (signal == SIGKILL ? 1ms : orphans_[i].reaction), [this, i] {
      if (i >= orphans_.size() || !std::exchange(orphans_[i].alive, false)) return;
      if (std::ranges::none_of(orphans_, &Process::alive)) deliver(OrphansGone{}, "no orphan is left");
    });
  }
  return true;
}

void Job::end_attempt() {
  for (const auto& [rank, process] : workers_) require(!process.alive, "no worker outlives its attempt");
  require(std::ranges::none_of(orphans_, &Process::alive), "no orphan outlives its attempt");
  orphans_.clear();
  is_attempt_over_ = true;
}

bool Job::finish_output() {
  if (draw_.chance(80)) return true;
  at(now_ + draw_.milliseconds(0, 3000), [this] { deliver(OutputWritten{}, "the output is written"); });
  return false;
}

void Job::check_suspension() const {
  for (const auto& [rank, process] : workers_) {
    const bool stands = process.alive && !process.was_killed && process.stopped && process.term_pending;
    require(!stands, "a worker that stands still goes on to end");
  }
  if (asked_ || supervisor_lost_) return;
  for (const auto& [rank, process] : workers_) {
    if (process.alive && !process.was_killed)
      require(process.stopped == suspended_,
              suspended_ ? "all workers stand still until the job goes on" : "no worker is left standing");
  }
}

// ---- Other nodes ----

void Job::tell(NodeEvent event, const std::string& line, milliseconds after) {
  at(now_ + after, [this, event = std::move(event), line] {
    if (left_ && !std::holds_alternative<Left>(event)) return;
    trace(line);
    emit(event);
  });
}

void Job::join() {
  require(!joined_ && !left_, "a node asks for a round once, and not after it has left");
  require(!stop_signal_ && !supervisor_lost_, "a node that is to end asks for no round");
  joined_ = true;
  told_ = false;
  verdict_.reset();
  has_failed_ = false;
  const milliseconds after = draw_.milliseconds(0, draw_.chance(20) ? 60'000 : 100);
  at(now_ + after, [this] {
    if (left_ || !joined_ || verdict_) return;
    in_round_ = true;
    joined_ = false;
    trace("a round begins");
    emit(RoundReady{{.machine_rank = first_rank() / schedule_.plan.nproc_per_node,
                     .num_machines = schedule_.num_machines,
                     .first_rank = first_rank(),
                     .world_size = schedule_.num_machines * schedule_.plan.nproc_per_node,
                     .master_port = 4321},
                    restarts_});
  });
}

// The nodes agree on the end of a round once.
bool Job::verdict_of_group(const RoundOver& verdict, const std::string& line, milliseconds after) {
  if (left_ || !in_round_) return false;
  in_round_ = false;
  if (verdict.restart) ++restarts_;
  tell(verdict, line, after);
  return true;
}

void Job::fail(const RoundOver& failure) {
  require(!std::exchange(told_, true), "a node says once how a round ended for it");
  trace(fmt::format("this node says that it failed with {}{}", failure.exit_code,
                    failure.restart ? ", and starts again" : ""));
  for (const auto& [rank, process] : workers_)
    require(!process.alive, "a node that says that it failed has no worker");
  if (!failure.failure.empty()) {
    const WorkerFailure cause = parse_failure(failure.failure);
    require(failure.restart == (restarts_ < schedule_.plan.max_restarts) || !in_round_,
            "workers start again while restarts are left");
    check_cause(cause);
  }
  const milliseconds after = draw_.milliseconds(0, 200);
  if (!verdict_of_group(failure, "the nodes agree", after)) return;
}

void Job::check_cause(const WorkerFailure& cause) const {
  const auto entry = workers_.find(cause.rank - first_rank());
  require(entry != workers_.end(), "the failure is that of a worker");
  const Process& worker = entry->second;
  // A signal of the agent ended what had failed before.
  const bool was_ended = asked_ && cause.error_file && cause.status == ExitStatus(Exited{1});
  require(worker.status == cause.status || was_ended, "the failure is that of a worker");
  require(!own_failures_.empty() || worker.lost_peer || !succeeded(worker.status), "a failure has a cause");
  require(!others_end_ || *others_end_ > kSlowEnd || !worker.lost_peer,
          "a node whose workers only lost one of another node waits for that node to say so");
  if (worker.lost_peer) return check_cause_among_losses(cause);
  // Whole error files tell the order, by the second that torch writes.
  const auto second = [](std::chrono::system_clock::time_point time) {
    return std::chrono::floor<std::chrono::seconds>(time);
  };
  const bool is_recorded = cause.error_file && cause.error_file->time;
  const auto known = is_recorded ? *cause.error_file->time : cause.time;
  bool all_are_exact = true;
  for (const int one : own_failures_) {
    const Process& other = workers_.at(one);
    all_are_exact = all_are_exact && other.recorded && other.record == Process::Record::exact;
    require(!other.recorded || second(known) <= second(*other.recorded),
            "the cause is a worker that failed in the first second");
  }
  require(!all_are_exact || own_failures_.empty() ||
              worker.recorded == workers_.at(own_failures_.front()).recorded,
          "the cause is the worker that failed first");
}

// Peers that lost it are no cause while it says why itself; if none is, one that others have lost.
void Job::check_cause_among_losses(const WorkerFailure& cause) const {
  for (const int one : own_failures_) {
    const Process& origin = workers_.at(one);
    require(!origin.recorded, "a worker whose error file says why is the cause, not those that lost it");
    require(suspended_ || origin.was_asked || origin.was_killed,
            "the worker that failed by itself is the cause, not those that lost it");
  }
  std::set<int> lost;
  for (const int loser : losses_) {
    const Process& one = workers_.at(loser);
    if (one.recorded && one.record == Process::Record::exact) lost.insert(one.lost);
  }
  const bool has_both = std::ranges::any_of(losses_, [&](int loser) { return lost.contains(loser); });
  require(!has_both || lost.contains(cause.rank - first_rank()), "the cause is one that others have lost");
}

void Job::finish() {
  require(!std::exchange(told_, true), "a node says once how a round ended for it");
  trace("this node says that its workers have succeeded");
  const bool runs_none = schedule_.plan.preflight == Preflight::alone;
  for (const auto& [rank, process] : workers_) {
    const bool obeyed = process.noticed && std::holds_alternative<Signaled>(process.status);
    require(runs_none || succeeded(process.status) || obeyed,
            "a node has succeeded when each of its workers has");
  }
  if (!in_round_) return;
  in_round_ = false;
  tell(JobDone{}, "the job is done", draw_.milliseconds(0, static_cast<int>(kAnswer.count())));
}

void Job::announce_end(int signal) {
  trace(fmt::format("this node announces {}", signal_name(signal)));
}

void Job::stop_job(int code) {
  trace(fmt::format("this node asks all to end with {}", code));
  verdict_of_group({.text = "acc stop", .exit_code = code}, "the nodes end", draw_.milliseconds(0, 100));
}

void Job::leave(const std::string&, int code) {
  require(!std::exchange(left_, true), "a node leaves once");
  trace(fmt::format("this node leaves with {}", code));
  for (const auto& [rank, process] : workers_) require(!process.alive, "a node that leaves has no worker");
  tell(Left{}, "this node has left", draw_.milliseconds(0, static_cast<int>(kAnswer.count())));
}

// ---- The user, the engine, the machine ----

void Job::disturb(const Disturbance& one) {
  switch (one.kind) {
    case Kind::signal:
    case Kind::stop_request:
      return ask(one);
    case Kind::reader_lost:
      return deliver(ReaderLost{}, "the reader of the output is gone");
    case Kind::supervisor_lost:
      return deliver(SupervisorLost{}, "the supervisor is killed");
    case Kind::hang:
      if (!std::ranges::any_of(workers_, [](const auto& entry) { return entry.second.alive; })) return;
      deliver(Hung{restarts_, 60s, "rank 0: asleep\n"}, "all ranks are idle");
      delivered_.push_back(HangStacks{restarts_, "  native stacks\n"});
      delivered_.push_back(HangExamined{restarts_});
      return;
    case Kind::others_fail: {
      const WorkerFailure theirs = {.rank = 99, .host = kOtherHost, .status = Exited{77}};
      // It may have closed its connections before it ended.
      milliseconds slow = draw_.chance(50) ? draw_.milliseconds(0, static_cast<int>(kSlowEnd.count())) : 0ms;
      if (draw_.chance(10)) slow += 5000ms;
      const bool is_agreed = verdict_of_group(
          {.restart = one.number == 1, .failure = to_json_text(theirs), .exit_code = 77},
          one.number == 1 ? "a worker elsewhere fails, and all start again" : "a worker elsewhere fails",
          slow);
      if (!is_agreed) return;
      others_end_ = slow;
      if (slow > 0ms) react_to_failure(kElsewhere);
      return;
    }
    case Kind::others_lost:
      // Where the number of nodes may change, that is no restart: the attempt has the same number again.
      if (verdict_of_group({.restart = true, .text = "node 1 was lost"}, "another node is lost", 0ms) &&
          one.number == 1)
        --restarts_;
      return;
    case Kind::others_notice:
      if (!left_) tell(EndNotice{SIGUSR1, kOtherHost}, "another node has a notice", 0ms);
      return;
  }
}

void Job::ask(const Disturbance& one) {
  if (one.kind == Kind::stop_request)
    return deliver(SignalArrived{.signal = SIGTERM, .now = one.number == 1, .of_job = true},
                   one.number == 1 ? "acc stop --now" : "acc stop");
  deliver(SignalArrived{one.number, static_cast<Receiver>(one.receiver)},
          fmt::format("{} to process {} of acc", signal_name(one.number), one.receiver));
}

// ---- What the agent knows ----

void Job::on_taken(const AgentEvent& event) {
  if (const auto* arrived = std::get_if<SignalArrived>(&event)) on_signal_taken(*arrived);
  if (const auto* ended = std::get_if<WorkerEnded>(&event); ended != nullptr && !asked_) on_end_taken(*ended);
  // A pipeline ends so; a failure is told all the same.
  const bool is_over = left_ && verdict_ && !verdict_->failure.empty();
  if (std::holds_alternative<ReaderLost>(event) && !stop_signal_ && !has_failed_ && !is_over) {
    stop_signal_ = SIGPIPE;
    stop_time_ = now_;
  }
  if (std::holds_alternative<SupervisorLost>(event)) supervisor_lost_ = supervisor_lost_.value_or(now_);
  if (std::holds_alternative<HangExamined>(event)) hang_taken_ = hung_ = true;
  const auto* of_node = std::get_if<NodeEvent>(&event);
  if (of_node == nullptr) return;
  if (const auto* verdict = std::get_if<RoundOver>(of_node); verdict != nullptr && !verdict_) {
    verdict_ = *verdict;
    others_end_.reset();
    if (!verdict->restart && !stop_signal_) group_code_ = verdict->exit_code;
  }
  if (std::holds_alternative<JobDone>(*of_node)) job_done_ = true;
  if (std::holds_alternative<EndNotice>(*of_node) && !std::exchange(noticed_, true)) notice_time_ = now_;
}

void Job::on_end_taken(const WorkerEnded& ended) {
  const auto* signaled = std::get_if<Signaled>(&ended.status);
  const bool obeyed = signaled != nullptr && schedule_.plan.notice_signals.contains(signaled->signal);
  if (succeeded(ended.status) || obeyed) return;
  has_failed_ = true;
  if (!workers_.at(ended.local_rank).lost_peer) {
    has_own_failure_ = true;
    return;
  }
  losses_.push_back(ended.local_rank);
  if (!first_loss_) first_loss_ = now_;
}

// One request to end may arrive as several signals: at once, at several of acc's processes, or repeated by
// an engine.
bool Job::is_copy(const SignalArrived& arrived) {
  const bool is_of_another_process = arrived.signal == stop_signal_ && arrived.receiver &&
                                     !stop_receivers_.empty() &&
                                     stop_receivers_.insert(*arrived.receiver).second;
  const bool is_repeated = arrived.signal == SIGTERM && stop_signal_ == SIGTERM && arrived.receiver &&
                           !stop_receivers_.empty() && now_ - stop_time_ <= schedule_.plan.repeated_sigterm;
  return is_of_another_process || is_repeated || now_ - stop_time_ <= kAtOnce;
}

void Job::on_signal_taken(const SignalArrived& arrived) {
  if (arrived.signal == SIGTSTP) suspended_ = true;
  if (arrived.signal == SIGCONT) suspended_ = false;
  if (schedule_.plan.notice_signals.contains(arrived.signal) && !std::exchange(noticed_, true))
    notice_time_ = now_;
  if (!is_stop(arrived.signal)) return;
  stopped_by_user_ = stopped_by_user_ || !arrived.receiver;
  if (arrived.now || (stop_signal_ && !is_copy(arrived))) impatient_ = true;
  if (stop_signal_) return;
  if (arrived.receiver) stop_receivers_.insert(*arrived.receiver);
  stop_signal_ = arrived.signal;
  stop_time_ = now_;
}

void Job::on_report(const Event& event) {
  if (const auto* killed = std::get_if<Killed>(&event))
    require(!killed->ranks.empty(), "the report names those that were killed");
  if (std::holds_alternative<Restarting>(event))
    require(!stop_signal_ && !supervisor_lost_, "a job that is to end does not start again");
  if (const auto* checked = std::get_if<PreflightFinished>(&event))
    require(checked->result.text == fmt::format("{}", check_), "the result is that of this round's checks");
}

// ---- The end ----

void Job::check_end(const LaunchReport& report) const {
  for (const auto& [rank, process] : workers_) require(!process.alive, "no worker outlives acc");
  require(std::ranges::none_of(orphans_, &Process::alive), "no orphan outlives acc");
  require(!flushing_, "no copy of the state outlives acc");
  require(left_, "the other nodes hear that this one leaves");
  require(report.restarts <= restarts_, "a restart is one that the nodes agreed on");
  const int expected = expected_code(report);
  require(report.exit_code == expected, "the exit code is the documented one",
          fmt::format("{}, not {}", expected, report.exit_code));
  if (stop_signal_ && now_ > stop_time_) {
    const auto allowed = schedule_.plan.shutdown_timeout + 2s + 1s + 5s + 2 * kAnswer + 1s;
    require(now_ - stop_time_ <= allowed, "a job that is asked to end does so in time");
  }
}

int Job::expected_code(const LaunchReport& report) const {
  if (supervisor_lost_) return 128 + SIGKILL;
  const bool is_noticed = (noticed_ || stop_signal_ == SIGTERM) && !stopped_by_user_;
  const auto lost_peer = [this](const WorkerFailure& failure) {
    return failure.host != kOtherHost && workers_.at(failure.rank - first_rank()).lost_peer;
  };
  const bool failed = report.first_failure && !lost_peer(*report.first_failure);
  if (schedule_.plan.requeue_on_preemption && is_noticed && !failed && !report.hung &&
      report.killed_ranks.empty() && (group_code_ == 0 || group_code_ == 75))
    return 75;
  // Who reads the output of a job that has failed may go.
  const bool is_told = verdict_ && !verdict_->failure.empty() && !report.stop_signal;
  if (stop_signal_ && !(stop_signal_ == SIGPIPE && is_told)) return 128 + *stop_signal_;
  if (report.hung) return kHungCode;
  if (verdict_) return verdict_->exit_code;
  require(job_done_, "without a verdict the job is done");
  return 0;
}

}  // namespace

// ---- Schedules ----

Draw::Draw(std::uint64_t seed, std::uint64_t purpose, std::uint64_t part)
    : state_(seed * 0x9e3779b97f4a7c15 + purpose * 0xbf58476d1ce4e5b9 + part * 0x94d049bb133111eb + 1) {}

// splitmix64, by Sebastiano Vigna.
int Draw::below(int count) {
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111eb;
  mixed ^= mixed >> 31U;
  return static_cast<int>(mixed % static_cast<std::uint64_t>(count));
}

milliseconds Draw::milliseconds(int from, int to) {
  return std::chrono::milliseconds(from + below(to - from + 1));
}

std::string to_string(const Disturbance& one) {
  constexpr std::array kNames = {"signal", "acc stop",    "reader lost", "supervisor lost",
                                 "hang",   "others fail", "others lost", "others' notice"};
  return fmt::format("{} ms: {} {} {}", one.time.count(), kNames[static_cast<std::size_t>(one.kind)],
                     one.number, one.receiver);
}

Schedule schedule_of(std::uint64_t seed) {
  Draw draw(seed);
  Schedule schedule{.seed = seed};
  LaunchPlan& plan = schedule.plan;
  plan.worker_command = {"train"};
  plan.program = "/bin/train";
  plan.environment.set("ACCELERATE_USE_CPU", "true");
  plan.output.no_logs = !draw.chance(25);
  plan.nproc_per_node = 1 + draw.below(4);
  plan.max_restarts = draw.below(4);
  plan.shutdown_timeout = std::array{0ms, 500ms, 5000ms, 30'000ms}[static_cast<std::size_t>(draw.below(4))];
  if (draw.chance(20)) plan.repeated_sigterm = 5000ms;
  plan.requeue_on_preemption = draw.chance(25);
  if (draw.chance(50)) plan.notice_signals = {SIGUSR1, SIGUSR2};
  plan.hang.action =
      std::array{OnHang::report, OnHang::kill, OnHang::restart}[static_cast<std::size_t>(draw.below(3))];
  schedule.num_machines = draw.chance(50) ? 2 : 1;
  schedule.has_checks = draw.chance(20);
  schedule.has_states = draw.chance(30);
  const int count = draw.below(draw.chance(20) ? 14 : 6);
  for (int i = 0; i < count; ++i) {
    Disturbance one{.time = draw.milliseconds(0, 40'000), .kind = static_cast<Kind>(draw.below(8))};
    if (one.kind == Kind::signal) {
      one.number = std::array{SIGTERM, SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR1, SIGUSR2}
          [static_cast<std::size_t>(draw.below(9))];
      one.receiver = draw.below(3);
    } else {
      one.number = draw.below(2);
    }
    // One in five follows on the heels of the one before.
    if (!schedule.disturbances.empty() && draw.chance(20))
      one.time = schedule.disturbances.back().time + draw.milliseconds(0, 300);
    if (schedule.num_machines == 1 && one.kind >= Kind::others_fail) continue;
    if (one.kind == Kind::supervisor_lost && !draw.chance(30)) continue;
    schedule.disturbances.push_back(one);
  }
  return schedule;
}

std::vector<std::string> execute(const Schedule& schedule) {
  return Job(schedule).run();
}

Schedule shortened(Schedule schedule) {
  const auto broken_promise = [](const Schedule& one) -> std::string {
    try {
      execute(one);
    } catch (const Violation& violation) {
      return violation.promise;
    }
    return {};
  };
  const std::string promise = broken_promise(schedule);
  for (std::size_t i = schedule.disturbances.size(); i-- > 0;) {
    Schedule without = schedule;
    without.disturbances.erase(without.disturbances.begin() + static_cast<std::ptrdiff_t>(i));
    if (broken_promise(without) == promise) schedule = std::move(without);
  }
  return schedule;
}

}  // namespace acc::test
