// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/client.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/json_nesting.hpp"
#include "acc/base/log.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/printable.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/base/text.hpp"
#include "acc/control/control_server.hpp"
#include "acc/control/job_file.hpp"
#include "acc/control/node_view.hpp"
#include "acc/launch/console.hpp"
#include "acc/launch/guard.hpp"
#include "acc/remote/frames.hpp"
#include "acc/remote/host_connection.hpp"
#include "acc/remote/summary.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kMaxConnecting = 32;
// How much longer than the grace period of the workers the hosts have to end by themselves.
constexpr auto kMargin = std::chrono::seconds(5);
// That of --shutdown-timeout, whatever a host says.
constexpr auto kMaxGrace = std::chrono::seconds(1'000'000'000);

// Longer than a host waits for the other nodes, shorter than a viewer waits.
constexpr auto kLookTimeout = std::chrono::milliseconds(1800);

enum class HostState { waiting, connecting, ready, running, ended };
constexpr std::size_t kHostStates = 5;
// In which a server that takes no more logins says so.
constexpr auto kRefusalOfLogin = std::chrono::seconds(1);
// Of what `--dry_run` prints for a host.
constexpr std::size_t kMaxPlan = std::size_t{16} << 20U;

struct HostRun {
  JobHost host = {};
  HostState state = HostState::waiting;
  std::shared_ptr<HostConnection> connection = {};
  RunningClock::time_point began = {};
  /// Until it is connected to again, when it was last, and what ssh said before.
  std::unique_ptr<RunningTimer> retry = {};
  RunningClock::time_point connected = {};
  std::string refusal_of_login = {};
  HostReady ready = {};
  /// Why it cannot start the job.
  std::vector<Problem> problems = {};
  ErrorKind kind = ErrorKind::rendezvous;
  std::optional<int> code = {};
  /// It said nothing for too long.
  bool silent = false;
  /// Its output, where that comes as one piece.
  std::string collected = {};
  int out = 0;
  int err = 0;
};

class Client {
 public:
  explicit Client(const RemoteJob& job);
  int run();

 private:
  OutputSink::Handlers sink_handlers(bool of_out);
  void on_room();
  void on_trouble(bool of_out, Console::State state, int error);
  OutputSink& err() { return err_ ? *err_ : out_; }
  void connect_some();
  void connect(std::size_t index);
  void open_connection(std::size_t index);
  bool connect_again_later(std::size_t index);
  void on_frame(std::size_t index, const Frame& frame);
  static void on_refused(HostRun& run, const Refusal& refusal);
  void explain_failure(HostRun& run);
  void on_end(std::size_t index);
  void on_answer();
  void start();
  void lose(HostRun& run);
  void end(HostRun& run, HostEnd how);
  void end_others_later();
  void beat();
  void wait_for_signal();
  void on_signal(int signal);
  void stop(int signal);
  void signal_hosts(int signal);
  void pause();
  void report_lost_output();
  void drop_output();
  void finish();
  JobHandlers job_handlers();
  JobView view() const;
  void look(std::function<void(const nlohmann::json&)> answer);
  void answer_lookers(const NodeReports& reports) { answer_lookers(to_json(reports)); }
  void answer_lookers(const nlohmann::json& reports);
  void on_reports(const std::string& payload);
  void say(log::Level level, const std::string& text) { log::write(level, text); }
  int exit_code_of_job() const;
  std::size_t& count(HostState state) { return in_state_.at(static_cast<std::size_t>(state)); }
  void set_state(HostRun& run, HostState state);
  [[noreturn]] void fail_start();

  const RemoteJob& job_;
  const std::optional<int> all_slots_ = total_slots(job_.hosts, job_.flag);
  // Each connection needs four descriptors here; ssh keeps the original limit.
  const rlimit open_files_ = raise_open_files();
  asio::io_context loop_{1};
  OutputSink out_;
  std::optional<OutputSink> err_ = {};
  asio::signal_set signals_;
  RunningTimer beat_;
  RunningTimer grace_;
  RunningTimer look_timeout_;
  std::vector<HostRun> hosts_ = {};
  /// Present while the job runs.
  std::optional<ControlServer> control_ = {};
  std::chrono::system_clock::time_point begun_ = {};
  /// Those who wait for the ranks of all nodes.
  std::vector<std::function<void(const nlohmann::json&)>> lookers_ = {};
  std::array<std::size_t, kHostStates> in_state_ = {};
  /// The first that still waits.
  std::size_t next_ = 0;
  std::vector<HostEnd> ends_ = {};
  std::size_t failed_ = 0;
  RepeatFilter repeats_ = {};
  bool started_ = false;
  bool is_over_ = false;
  std::optional<int> stop_signal_ = {};
  RunningClock::time_point stopped_at_ = {};
  /// How long the workers of each host have to end, at most.
  std::chrono::milliseconds max_grace_ = {};
  std::string lost_reason_ = {};
  bool output_lost_ = false;
  /// Nobody is to wait for the reader of the output.
  bool dropping_ = false;
};

Client::Client(const RemoteJob& job)
    : job_(job),
      out_(loop_, STDOUT_FILENO, sink_handlers(true)),
      signals_(loop_),
      beat_(loop_),
      grace_(loop_),
      look_timeout_(loop_) {
  if (!same_file(STDOUT_FILENO, STDERR_FILENO)) err_.emplace(loop_, STDERR_FILENO, sink_handlers(false));
  for (const JobHost& host : job.hosts) hosts_.push_back({.host = host});
  count(HostState::waiting) = hosts_.size();
  for (HostRun& run : hosts_) {
    run.out = out_.add_source();
    run.err = err().add_source();
  }
}

OutputSink::Handlers Client::sink_handlers(bool of_out) {
  return {
      .on_room = [this] { on_room(); },
      .on_trouble = [this, of_out](Console::State state, int error) { on_trouble(of_out, state, error); }};
}

void Client::on_room() {
  for (HostRun& run : hosts_) {
    if (run.connection) run.connection->resume();
  }
  if (is_over_) finish();
}

// As in a job of one machine: a full disk is told, and without a reader the job ends as a writer to a closed
// pipe does.
void Client::on_trouble(bool of_out, Console::State state, int error) {
  if (state == Console::State::full) {
    lost_reason_ = std::strerror(error);
    say(log::Level::warn, fmt::format("{} cannot be written: {}; acc keeps trying",
                                      !err_    ? "the output"
                                      : of_out ? "standard output"
                                               : "standard error",
                                      lost_reason_));
  } else if (state == Console::State::no_reader && !stop_signal_ && failed_ == 0) {
    stop(SIGPIPE);
  }
}

void Client::set_state(HostRun& run, HostState state) {
  --count(run.state);
  ++count(state);
  run.state = state;
}

int Client::run() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  const log::ConsoleRedirect console([this](std::string_view lines) { err().announce(lines); });
  for (const int signal : forwarded_signals(job_.handled_signals)) {
    if (signal != SIGWINCH && signal != SIGCONT) signals_.add(signal);
  }
  wait_for_signal();
  connect_some();
  beat();
  loop_.run();
  if (!started_) {
    if (stop_signal_) return 128 + *stop_signal_;
    fail_start();
  }
  const int code = exit_code_of_job();
  if (control_) control_->end(code);
  return code;
}

int Client::exit_code_of_job() const {
  const int code = code_of_job(ends_, job_.survives_loss);
  if (stop_signal_ && (code == 0 || stop_signal_ == SIGPIPE)) return 128 + *stop_signal_;
  return code == 0 && output_lost_ ? exit_code(ErrorKind::system) : code;
}

void Client::connect_some() {
  while (next_ < hosts_.size() && count(HostState::connecting) < kMaxConnecting && !is_over_)
    connect(next_++);
}

void Client::connect(std::size_t index) {
  HostRun& run = hosts_[index];
  set_state(run, HostState::connecting);
  run.began = RunningClock::now();
  open_connection(index);
}

void Client::open_connection(std::size_t index) {
  HostRun& run = hosts_[index];
  run.connected = RunningClock::now();
  run.connection = std::make_shared<HostConnection>(
      loop_, HostConnection::Events{.on_frame = [this, index](const Frame& frame) { on_frame(index, frame); },
                                    .on_end = [this, index] { on_end(index); },
                                    .takes_output =
                                        [this, index] {
                                          return dropping_ || (out_.wants(hosts_[index].out) &&
                                                               err().wants(hosts_[index].err));
                                        }});
  const std::vector<std::string> command = agent_command(job_.shell, run.host.name);
  log::debug("{}: {}", run.host.name, join(command, " "));
  const bool is_here = is_this_machine(run.host.name, job_.shell.names);
  run.connection->open(command, job_.environment,
                       is_here ? HostConnection::Child::agent : HostConnection::Child::ssh, open_files_);
  JobSpec spec = job_.spec;
  spec.host = allocation_of_host(job_.hosts, static_cast<int>(index), job_.flag, all_slots_);
  spec.silence = job_.silence * 4 / 3;
  run.connection->send(FrameKind::spec, to_json(spec));
}

// As long as the host has to answer. The random delay keeps the hosts from coming all at once again.
bool Client::connect_again_later(std::size_t index) {
  HostRun& run = hosts_[index];
  if (!run.problems.empty() || !refuses_login_for_now(run.connection->errors())) return false;
  const auto delay = std::chrono::milliseconds(200 + random_number() % 600);
  if (is_over_ || RunningClock::now() + delay - run.began > job_.host_timeout) return false;
  run.refusal_of_login = run.connection->errors();
  log::debug("{}: {}; connects again in {} ms", run.host.name, trim(run.refusal_of_login), delay.count());
  run.retry = std::make_unique<RunningTimer>(loop_);
  run.retry->expires_after(delay);
  run.retry->async_wait([this, index](error_code error) {
    if (!error && !is_over_) open_connection(index);
  });
  return true;
}

void Client::on_frame(std::size_t index, const Frame& frame) {
  HostRun& run = hosts_[index];
  switch (frame.kind) {
    case FrameKind::ready:
      if (run.state != HostState::connecting) return;
      run.ready = parse_host_ready(frame.payload);
      set_state(run, HostState::ready);
      log::debug("{}: ready", run.host.name);
      return on_answer();
    case FrameKind::refused:
      return on_refused(run, parse_refusal(frame.payload));
    case FrameKind::out:
      if (dropping_) return;
      if (!job_.in_order) return out_.feed(run.out, frame.payload, true);
      if (run.collected.size() + frame.payload.size() > kMaxPlan)
        throw Error({.kind = ErrorKind::system, .what = "it sends more than a plan has"});
      run.collected += frame.payload;
      return;
    case FrameKind::err:
      if (dropping_) return;
      return err().feed(run.err, frame.payload, true);
    case FrameKind::log:
      if (repeats_.is_new(frame.payload, static_cast<int>(index), RunningClock::now()))
        err().announce(with_host(printable(frame.payload), run.host.name));
      return;
    case FrameKind::reports:
      return on_reports(frame.payload);
    case FrameKind::exit:
      run.code = parse_exit_code(frame.payload);
      return;
    default:
      return;
  }
}

void Client::on_refused(HostRun& run, const Refusal& refusal) {
  run.problems = refusal.problems;
  for (Problem& problem : run.problems)
    problem = {printable(problem.what), printable(problem.where), printable(problem.hint)};
  run.kind = refusal.kind;
}

void Client::explain_failure(HostRun& run) {
  if (!run.problems.empty()) return;
  const auto& status = run.connection->status();
  const std::string& errors = run.connection->errors();
  // Afterwards the login has been taken.
  const bool may_be_refused =
      !status && errors.empty() && RunningClock::now() - run.connected < kRefusalOfLogin;
  const ConnectionProblem problem = explain({.host = run.host.name,
                                             .status = status,
                                             .errors = may_be_refused ? run.refusal_of_login : errors,
                                             .output = run.connection->preamble()},
                                            job_.shell, job_.host_timeout);
  run.problems = {problem.problem};
  run.kind = problem.kind;
}

// The connection has ended: before the answer, after the exit code, or in between.
void Client::on_end(std::size_t index) {
  HostRun& run = hosts_[index];
  if (run.state == HostState::ended) return;
  if (run.state == HostState::connecting || run.state == HostState::ready) {
    if (run.state == HostState::connecting && connect_again_later(index)) return;
    set_state(run, HostState::ended);
    explain_failure(run);
    return on_answer();
  }
  for (const Problem& problem : run.problems)
    say(log::Level::error, fmt::format("{}: {}", run.host.name, to_string(problem)));
  if (!run.code) return lose(run);
  end(run, {run.code});
}

// All have answered, or not in time: the job starts, or the whole start ends.
void Client::on_answer() {
  if (is_over_) return;
  connect_some();
  if (count(HostState::waiting) + count(HostState::connecting) > 0) return;
  if (count(HostState::ready) == hosts_.size()) return start();
  is_over_ = true;
  loop_.stop();
}

void Client::start() {
  started_ = true;
  std::vector<HostReady> ready;
  for (const HostRun& run : hosts_) {
    ready.push_back(run.ready);
    max_grace_ = std::max(max_grace_, std::min<std::chrono::milliseconds>(run.ready.grace, kMaxGrace));
  }
  const StartOrder order = {
      .address = meeting_address(ready), .port = ready.front().port, .run_id = job_.run_id};
  log::debug("all {} hosts are ready; they meet at {}:{}", hosts_.size(), order.address, order.port);
  for (HostRun& run : hosts_) {
    set_state(run, HostState::running);
    run.connection->send(FrameKind::start, to_json(order));
  }
  if (job_.in_order) return;
  begun_ = std::chrono::system_clock::now();
  control_.emplace(loop_, runtime_folders(job_.environment, ::geteuid()), view().id, job_handlers());
  control_->report_problem();
}

// The client as a job without ranks of its own, which shows those of all hosts.
JobHandlers Client::job_handlers() {
  return {.view = [this] { return view(); },
          .stop =
              [this](bool now) {
                stop(SIGTERM);
                if (now) stop(SIGTERM);
              },
          .output = [](int) -> const OutputRing* { return nullptr; },
          .history = [](int) -> std::optional<StepHistory> { return std::nullopt; },
          .write_stacks =
              [](const Descriptor& to) {
                write_all(to.get(), "its ranks run on other hosts, where acc ps --stacks shows them\n");
              },
          .nodes = [this](auto answer) { look(std::move(answer)); }};
}

JobView Client::view() const {
  return {.id = job_id(job_.command, ::getpid()),
          .pid = ::getpid(),
          .agent = ::getpid(),
          .run_id = job_.run_id,
          .world_size = all_slots_.value_or(0),
          .started = begun_,
          .command = job_.command,
          .folder = job_.spec.folder,
          .hosts = static_cast<int>(hosts_.size())};
}

// The first host is where the node runs that leads; if it has ended, another one asks the node that does.
void Client::look(std::function<void(const nlohmann::json&)> answer) {
  lookers_.push_back(std::move(answer));
  if (lookers_.size() > 1) return;
  const auto run = std::ranges::find(hosts_, HostState::running, &HostRun::state);
  if (run == hosts_.end()) return answer_lookers(NodeReports{.reason = "all hosts have ended"});
  run->connection->send(FrameKind::look);
  look_timeout_.expires_after(kLookTimeout);
  look_timeout_.async_wait([this, host = run->host.name](error_code error) {
    if (!error) answer_lookers(NodeReports{.reason = host + " does not answer"});
  });
}

void Client::on_reports(const std::string& payload) {
  const nlohmann::json reports = nlohmann::json::parse(payload, nullptr, false);
  if (!reports.is_object() || is_deeply_nested(payload))
    return answer_lookers(NodeReports{.reason = "a host cannot read them"});
  answer_lookers(reports);
}

void Client::answer_lookers(const nlohmann::json& reports) {
  look_timeout_.cancel();
  for (const auto& answer : std::exchange(lookers_, {})) answer(reports);
}

void Client::lose(HostRun& run) {
  // ssh looks for silence, too, and may notice it first; by its LogLevel it says so or not.
  const std::string told = printable(trim(run.connection->errors()));
  const bool silent = run.silent || ended_by_silence(told) ||
                      (told.empty() && run.connection->silence_of_ssh() > job_.silence);
  const std::string reason = silent ? "nothing came for " + seconds_text(job_.silence) : told;
  say(log::Level::error,
      fmt::format("{}: the connection is lost{}{}", run.host.name, reason.empty() ? "" : ": " + reason,
                  job_.survives_loss ? "; the job goes on without it" : ""));
  end(run, {});
}

void Client::end(HostRun& run, HostEnd outcome) {
  set_state(run, HostState::ended);
  out_.close_source(run.out);
  err().close_source(run.err);
  ends_.push_back(outcome);
  if (outcome.code != 0) ++failed_;
  if (ends_.size() == hosts_.size()) {
    for (const HostRun& one : hosts_) out_.announce(one.collected);
    report_lost_output();
    is_over_ = true;
    return finish();
  }
  if (job_.survives_loss || stop_signal_ || outcome.code == 0) return;
  if (!outcome.code) signal_hosts(SIGTERM);
  end_others_later();
}

// The nodes end each other; one that waits for a node that has ended before they met does not.
void Client::end_others_later() {
  if (failed_ > 1) return;
  grace_.expires_after(max_grace_ + kMargin);
  grace_.async_wait([this](error_code error) {
    if (error || is_over_) return;
    say(log::Level::warn, "hosts that have not ended are stopped");
    signal_hosts(SIGTERM);
  });
}

void Client::signal_hosts(int signal) {
  for (HostRun& run : hosts_) {
    if (run.state == HostState::running) run.connection->send(FrameKind::signal, fmt::to_string(signal));
  }
}

// Heartbeats; and what has been silent for too long is ended.
void Client::beat() {
  const auto now = RunningClock::now();
  for (HostRun& run : hosts_) {
    // One whose child has ended will be connected to again.
    if (!run.connection || run.connection->status() || run.state == HostState::ended) continue;
    run.connection->send(FrameKind::heartbeat);
    if (run.connection->is_stalled()) run.connection->restart_silence();
    const bool late = run.state == HostState::connecting ? now - run.began > job_.host_timeout
                                                         : now - run.connection->last_heard() > job_.silence;
    if (!late) continue;
    if (run.state == HostState::connecting) explain_failure(run);
    run.silent = true;
    run.connection->kill();
  }
  const auto interval = std::min<std::chrono::milliseconds>(job_.silence / 4, std::chrono::seconds(1));
  beat_.expires_after(interval);
  beat_.async_wait([this](error_code error) {
    if (!error && !is_over_) beat();
  });
}

void Client::wait_for_signal() {
  signals_.async_wait([this](error_code error, int signal) {
    if (error) return;
    on_signal(signal);
    wait_for_signal();
  });
}

void Client::on_signal(int signal) {
  if (signal == SIGTSTP) return pause();
  if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) {
    const bool repeated = started_ && stop_signal_ && RunningClock::now() - stopped_at_ <= kRepeatedSignal;
    return repeated ? void() : stop(signal);
  }
  const bool is_notice = signal == SIGUSR1 || signal == SIGUSR2;
  // Others end the job, but only its hosts know how.
  if (started_) return signal_hosts(signal);
  if (!is_notice) stop(signal);
}

// The first request ends the job, and its output is waited for; the next one kills the workers, and the
// output goes nowhere. So it does when the hosts do not end in time, since it may be the output that they
// wait for.
void Client::stop(int signal) {
  if (!started_) {
    stop_signal_ = signal;
    is_over_ = true;
    return loop_.stop();
  }
  signal_hosts(signal == SIGPIPE ? SIGTERM : signal);
  const bool again = std::exchange(stop_signal_, stop_signal_.value_or(signal)).has_value();
  if (again || is_over_) return drop_output();
  stopped_at_ = RunningClock::now();
  const std::chrono::milliseconds limit = max_grace_ + kMargin;
  grace_.expires_after(limit);
  grace_.async_wait([this, limit](error_code error) {
    if (error) return;
    say(log::Level::warn, fmt::format("{}: the rest of the output is dropped",
                                      is_over_ ? "the output is not read"
                                               : "hosts have not ended within " + seconds_text(limit)));
    drop_output();
  });
}

void Client::drop_output() {
  if (std::exchange(dropping_, true) || is_over_) return loop_.stop();
  for (HostRun& run : hosts_) {
    if (run.connection) run.connection->resume();
  }
}

// The job goes on while its client is stopped, until its output has to wait.
void Client::pause() {
  for (HostRun& run : hosts_) {
    if (run.connection) run.connection->send(FrameKind::pause);
  }
  ::raise(SIGSTOP);
}

void Client::report_lost_output() {
  out_.finish();
  if (err_) err_->finish();
  const std::string lost_output =
      lost_output_text(out_.give_up() + (err_ ? err_->give_up() : 0), lost_reason_);
  output_lost_ = !lost_output.empty();
  if (!output_lost_) return;
  const bool succeeded = !stop_signal_ && code_of_job(ends_, job_.survives_loss) == 0;
  say(log::Level::warn, lost_output + (succeeded ? "; the exit code is 1 for that" : ""));
}

void Client::finish() {
  const bool written = out_.finish() && (!err_ || err_->finish());
  if (written || dropping_) loop_.stop();
}

void Client::fail_start() {
  std::vector<HostProblem> problems;
  ErrorKind kind = ErrorKind::rendezvous;
  for (const HostRun& run : hosts_) {
    for (const Problem& problem : run.problems) problems.push_back({run.host.name, problem});
    if (!run.problems.empty() && run.kind != ErrorKind::rendezvous) kind = run.kind;
  }
  throw Error(kind, merge_problems(problems));
}

}  // namespace

int run_on_hosts(const RemoteJob& job) {
  open_standard_streams();
  return Client(job).run();
}

}  // namespace acc::launcher
