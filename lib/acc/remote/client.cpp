// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/client.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <functional>
#include <memory>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/base/text.hpp"
#include "acc/launch/console.hpp"
#include "acc/launch/guard.hpp"
#include "acc/remote/frames.hpp"
#include "acc/remote/host_connection.hpp"
#include "acc/remote/summary.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr std::size_t kMaxConnecting = 32;

enum class HostState { waiting, connecting, ready, running, ended };

struct HostRun {
  JobHost host = {};
  HostState state = HostState::waiting;
  std::shared_ptr<HostConnection> connection = {};
  steady_clock::time_point began = {};
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
  OutputSink::Handlers sink_handlers();
  OutputSink& err() { return err_ ? *err_ : out_; }
  void connect_some();
  void connect(std::size_t index);
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
  void pause();
  void finish();
  int finish_output();
  void say(log::Level level, const std::string& text) { log::write(level, text); }
  bool is_starting() const { return !started_; }
  std::size_t count(HostState state) const;
  [[noreturn]] void fail_start();

  const RemoteJob& job_;
  const std::optional<int> all_slots_ = total_slots(job_.hosts, job_.flag);
  // Each connection needs four descriptors here; ssh keeps the original limit.
  const rlimit open_files_ = raise_open_files();
  asio::io_context loop_{1};
  OutputSink out_;
  std::optional<OutputSink> err_ = {};
  asio::signal_set signals_;
  asio::steady_timer beat_;
  asio::steady_timer grace_;
  std::vector<HostRun> hosts_ = {};
  std::vector<HostEnd> ends_ = {};
  SaidOnce said_ = {};
  bool started_ = false;
  bool over_ = false;
  std::optional<int> stop_signal_ = {};
};

Client::Client(const RemoteJob& job)
    : job_(job), out_(loop_, STDOUT_FILENO, sink_handlers()), signals_(loop_), beat_(loop_), grace_(loop_) {
  if (!same_file(STDOUT_FILENO, STDERR_FILENO)) err_.emplace(loop_, STDERR_FILENO, sink_handlers());
  for (const JobHost& host : job.hosts) hosts_.push_back({.host = host});
  for (HostRun& run : hosts_) {
    run.out = out_.add_source();
    run.err = err().add_source();
  }
}

OutputSink::Handlers Client::sink_handlers() {
  return {.on_room =
              [this] {
                for (HostRun& run : hosts_) {
                  if (run.connection) run.connection->resume();
                }
                if (over_) finish();
              },
          .on_trouble =
              [this](Console::State state, int) {
                // Nobody reads the output of the job any more: it ends as a writer to a closed pipe does.
                if (state == Console::State::no_reader) on_signal(SIGTERM);
              }};
}

std::size_t Client::count(HostState state) const {
  return static_cast<std::size_t>(std::ranges::count(hosts_, state, &HostRun::state));
}

int Client::run() {
  ::signal(SIGPIPE, SIG_IGN);
  const log::ConsoleRedirect console([this](std::string_view lines) { err().announce(lines); });
  for (const int signal : forwarded_signals()) {
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
  return code_of_job(ends_, job_.survives_loss);
}

void Client::connect_some() {
  for (std::size_t i = 0; i < hosts_.size() && count(HostState::connecting) < kMaxConnecting; ++i) {
    if (hosts_[i].state == HostState::waiting && !over_) connect(i);
  }
}

void Client::connect(std::size_t index) {
  HostRun& run = hosts_[index];
  run.state = HostState::connecting;
  run.began = steady_clock::now();
  run.connection = std::make_shared<HostConnection>(
      loop_,
      HostConnection::Events{
          .on_frame = [this, index](const Frame& frame) { on_frame(index, frame); },
          .on_end = [this, index] { on_end(index); },
          .takes_output =
              [this, index] { return out_.wants(hosts_[index].out) && err().wants(hosts_[index].err); }});
  const std::vector<std::string> command = agent_command(job_.shell, run.host.name);
  log::debug("{}: {}", run.host.name, join(command, " "));
  run.connection->open(command, job_.environment, open_files_);
  JobSpec spec = job_.spec;
  spec.host = place_of_host(job_.hosts, static_cast<int>(index), job_.flag, all_slots_);
  spec.silence = job_.silence * 4 / 3;
  run.connection->send(FrameKind::spec, to_json(spec));
}

void Client::on_frame(std::size_t index, const Frame& frame) {
  HostRun& run = hosts_[index];
  switch (frame.kind) {
    case FrameKind::ready:
      if (run.state != HostState::connecting) return;
      run.ready = parse_host_ready(frame.payload);
      run.state = HostState::ready;
      log::debug("{}: ready", run.host.name);
      return on_answer();
    case FrameKind::refused:
      return on_refused(run, parse_refusal(frame.payload));
    case FrameKind::out:
      if (!job_.in_order) return out_.feed(run.out, frame.payload, true);
      run.collected += frame.payload;
      return;
    case FrameKind::err:
      return err().feed(run.err, frame.payload, true);
    case FrameKind::log:
      if (said_.is_new(frame.payload, static_cast<int>(index)))
        err().announce(with_host(frame.payload, run.host.name));
      return;
    case FrameKind::exit:
      if (const auto code = parse_integer(frame.payload)) run.code = static_cast<int>(*code);
      return;
    default:
      return;
  }
}

void Client::on_refused(HostRun& run, const Refusal& refusal) {
  run.problems = refusal.problems;
  run.kind = refusal.kind;
}

void Client::explain_failure(HostRun& run) {
  if (!run.problems.empty()) return;
  const ConnectionProblem found = explain({.host = run.host.name,
                                           .status = run.connection->status(),
                                           .errors = run.connection->errors(),
                                           .output = run.connection->preamble()},
                                          job_.shell, job_.host_timeout);
  run.problems = {found.problem};
  run.kind = found.kind;
}

// The connection has ended: before the answer, after the exit code, or in between.
void Client::on_end(std::size_t index) {
  HostRun& run = hosts_[index];
  if (run.state == HostState::ended) return;
  if (run.state == HostState::connecting || run.state == HostState::ready) {
    run.state = HostState::ended;
    explain_failure(run);
    return on_answer();
  }
  if (!run.code) return lose(run);
  end(run, {run.code});
}

// All have answered, or not in time: the job starts, or the whole start ends.
void Client::on_answer() {
  if (over_) return;
  connect_some();
  if (count(HostState::waiting) + count(HostState::connecting) > 0) return;
  if (count(HostState::ready) == hosts_.size()) return start();
  over_ = true;
  loop_.stop();
}

void Client::start() {
  started_ = true;
  std::vector<HostReady> ready;
  for (const HostRun& run : hosts_) ready.push_back(run.ready);
  const StartOrder order = {
      .address = meeting_address(ready), .port = ready.front().port, .run_id = job_.run_id};
  log::debug("all {} hosts are ready; they meet at {}:{}", hosts_.size(), order.address, order.port);
  for (HostRun& run : hosts_) {
    run.state = HostState::running;
    run.connection->send(FrameKind::start, to_json(order));
  }
}

void Client::lose(HostRun& run) {
  const std::string reason =
      run.silent ? fmt::format("nothing came for {:g} s", static_cast<double>(job_.silence.count()) / 1000)
                 : std::string(trim(run.connection->errors()));
  say(log::Level::error,
      fmt::format("{}: the connection is lost{}{}", run.host.name, reason.empty() ? "" : ": " + reason,
                  job_.survives_loss ? "; the job goes on without it" : ""));
  end(run, {});
}

void Client::end(HostRun& run, HostEnd how) {
  run.state = HostState::ended;
  out_.close_source(run.out);
  err().close_source(run.err);
  ends_.push_back(how);
  if (ends_.size() == hosts_.size()) {
    over_ = true;
    for (const HostRun& one : hosts_) out_.announce(one.collected);
    finish();
    return;
  }
  if (job_.survives_loss || stop_signal_ || how.code == 0) return;
  if (!how.code) {
    for (HostRun& other : hosts_) {
      if (other.state == HostState::running)
        other.connection->send(FrameKind::signal, fmt::to_string(SIGTERM));
    }
  }
  end_others_later();
}

// The nodes end each other; one that waits for a node that has ended before they met does not.
void Client::end_others_later() {
  if (ends_.size() > 1 && std::ranges::count_if(ends_, [](const HostEnd& end) { return end.code != 0; }) > 1)
    return;
  grace_.expires_after(job_.grace + std::chrono::seconds(5));
  grace_.async_wait([this](error_code error) {
    if (error || over_) return;
    say(log::Level::warn, "hosts that have not ended are stopped");
    for (HostRun& run : hosts_) {
      if (run.state == HostState::running) run.connection->send(FrameKind::signal, fmt::to_string(SIGTERM));
    }
  });
}

// Heartbeats; and what has been silent for too long is ended.
void Client::beat() {
  const auto now = steady_clock::now();
  for (HostRun& run : hosts_) {
    if (!run.connection || run.state == HostState::ended) continue;
    run.connection->send(FrameKind::heartbeat);
    if (run.connection->is_stalled()) run.connection->restart_silence();
    const bool late = run.state == HostState::connecting ? now - run.began > job_.host_timeout
                                                         : now - run.connection->heard() > job_.silence;
    if (!late) continue;
    if (run.state == HostState::connecting) explain_failure(run);
    run.silent = true;
    run.connection->kill();
  }
  const auto interval = std::min<std::chrono::milliseconds>(job_.silence / 4, std::chrono::seconds(1));
  beat_.expires_after(interval);
  beat_.async_wait([this](error_code error) {
    if (!error && !over_) beat();
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
  const bool stops = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
  if (!started_) {
    if (!stops) return;
    stop_signal_ = signal;
    over_ = true;
    return loop_.stop();
  }
  if (stops && !stop_signal_) stop_signal_ = signal;
  for (HostRun& run : hosts_) {
    if (run.state == HostState::running) run.connection->send(FrameKind::signal, fmt::to_string(signal));
  }
}

// The job goes on while its client is stopped, until its output has to wait.
void Client::pause() {
  for (HostRun& run : hosts_) {
    if (run.connection) run.connection->send(FrameKind::pause);
  }
  ::raise(SIGSTOP);
  for (HostRun& run : hosts_) {
    if (run.connection) run.connection->restart_silence();
  }
}

void Client::finish() {
  const bool written = out_.finish() && (!err_ || err_->finish());
  if (written) loop_.stop();
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
  return Client(job).run();
}

}  // namespace acc::launcher
