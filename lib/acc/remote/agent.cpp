// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/agent.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/log.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/base/subprocess/child_answer.hpp"
#include "acc/base/subprocess/process_launcher.hpp"
#include "acc/base/text.hpp"
#include "acc/launch/console.hpp"
#include "acc/launch/exit_status.hpp"
#include "acc/launch/relay.hpp"
#include "acc/remote/frames.hpp"
#include "acc/remote/host_environment.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;
using boost::system::error_code;

// Output is read no faster than ssh takes it.
constexpr std::size_t kMaxQueued = std::size_t{1} << 20U;
constexpr int kMaxPortsTried = 1000;
constexpr std::uint16_t kDefaultPort = 29500;
constexpr auto kEndOfStreams = std::chrono::seconds(1);
// How much longer than the grace period of its workers the job has to end by itself.
constexpr auto kMarginOfJob = std::chrono::seconds(5);
// A driver may block for longer.
constexpr auto kMeasureTimeout = std::chrono::seconds(5);
// More than a pipe holds, but not without limit: another process may never cease to write.
constexpr int kMaxLastReads = 32;

// Below the ports that the kernel gives to clients; a listener that another process opens meanwhile is
// refused to the store of node 0, and said there.
std::uint16_t find_port() {
  const std::uint32_t first = random_number();
  for (std::uint32_t tried = 0; tried < kMaxPortsTried; ++tried) {
    const auto port = static_cast<std::uint16_t>(20000 + (first + tried) % 10000);
    const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return port;
  }
  return kDefaultPort;
}

// The address at which ssh came in can be reached from outside; it may be a loopback.
HostReady describe_host() {
  const OwnNames names = own_names();
  HostReady ready = {.host_name = names.host_name, .port = find_port()};
  const std::vector<std::string> of_ssh = split(Environment::of_process().get("SSH_CONNECTION"), ' ');
  if (of_ssh.size() == 4) {
    ready.client = of_ssh[0];
    ready.addresses.push_back(of_ssh[2]);
  }
  for (const std::string& address : addresses_for_others(names)) ready.addresses.push_back(address);
  return ready;
}

// A login leaves its home in PWD, which programs may read for the current folder. A name of that folder,
// perhaps through a link, stays.
void set_current_folder(Environment& environment, const std::filesystem::path& folder) {
  const std::filesystem::path named = environment.get("PWD");
  std::error_code ignored;
  if (named.is_absolute() && std::filesystem::equivalent(named, folder, ignored)) return;
  environment.set("PWD", folder.string());
}

/// A stream of the job.
struct JobStream {
  stream_descriptor from;
  FrameKind kind = FrameKind::out;
};

class HostAgent {
 public:
  explicit HostAgent(const HostJob& job) : job_(job) {}
  int run();

 private:
  void read_input();
  void on_frame(const Frame& frame);
  void on_spec(const std::string& text);
  void on_start(const std::string& text);
  void on_signal(const std::string& text);
  void wait_for_own_signal();
  void on_own_signal(int signal);
  void on_look();
  void reap_lookers() const;
  void refuse(ErrorKind kind, std::vector<Problem> problems);
  void start_job();
  [[noreturn]] static void be_job(const HostJob& job, const JobSpec& spec, int log);
  void on_job_ended();
  void forward(const std::shared_ptr<JobStream>& stream);
  bool read_stream(JobStream& stream);
  void end_stream(const std::shared_ptr<JobStream>& stream);
  void send(FrameKind kind, std::string_view payload = {});
  void write_queue();
  void keep_alive();
  void end_when_done();
  void lose_client(const std::string& reason);
  void ask_job_to_end();

  const HostJob& job_;
  asio::io_context loop_{1};
  stream_descriptor in_{loop_};
  stream_descriptor out_{loop_};
  asio::signal_set signals_{loop_};
  RunningTimer alive_{loop_};
  RunningTimer last_output_{loop_};
  RunningTimer kill_{loop_};
  ChildAnswer looker_{loop_};
  std::array<char, std::size_t{64} << 10U> in_buffer_ = {};
  FrameReader frames_{false};
  FrameReader log_frames_{false};
  std::string queue_ = {};
  std::string writing_ = {};
  std::optional<JobSpec> spec_ = {};
  /// How long the workers have to end.
  std::chrono::milliseconds grace_ = {};
  std::optional<Process> process_ = {};
  std::optional<int> code_ = {};
  std::vector<std::shared_ptr<JobStream>> streams_ = {};
  /// Those that wait until the queue is shorter.
  std::vector<std::shared_ptr<JobStream>> stalled_ = {};
  RunningClock::time_point last_heard_ = RunningClock::now();
  bool paused_ = false;
  bool lost_ = false;
  bool asked_to_end_ = false;
  bool done_ = false;
};

int HostAgent::run() {
  open_standard_streams();
  ::signal(SIGPIPE, SIG_IGN);
  in_.assign(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  out_.assign(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  queue_ = greeting();
  write_queue();
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) signals_.add(signal);
  wait_for_own_signal();
  read_input();
  loop_.run();
  return code_.value_or(exit_code(ErrorKind::system));
}

void HostAgent::read_input() {
  in_.async_read_some(asio::buffer(in_buffer_), [this](error_code error, std::size_t size) {
    if (error) return done_ ? void() : lose_client("its input ended");
    last_heard_ = RunningClock::now();
    paused_ = false;
    try {
      for (const Frame& frame : frames_.feed({in_buffer_.data(), size})) on_frame(frame);
    } catch (const Error& wrong) {
      process_ ? lose_client(wrong.what()) : refuse(wrong.kind(), wrong.problems());
    } catch (const std::exception& wrong) {
      process_ ? lose_client(wrong.what()) : refuse(ErrorKind::system, {{.what = wrong.what()}});
    }
    if (!lost_) read_input();
  });
}

void HostAgent::on_frame(const Frame& frame) {
  if (done_) return;
  switch (frame.kind) {
    case FrameKind::spec:
      return on_spec(frame.payload);
    case FrameKind::start:
      return on_start(frame.payload);
    case FrameKind::signal:
      return on_signal(frame.payload);
    case FrameKind::look:
      return on_look();
    case FrameKind::pause:
      paused_ = true;
      return;
    default:
      return;
  }
}

void HostAgent::on_spec(const std::string& text) {
  if (const std::string theirs = version_of_spec(text); theirs != job_.version) {
    return refuse(ErrorKind::usage,
                  {{.what = fmt::format("has {}, and the host that starts the job {}", job_.version, theirs),
                    .hint = "install the same version on all hosts"}});
  }
  spec_ = parse_job_spec(text);
  keep_alive();
  if (::chdir(spec_->folder.c_str()) != 0) {
    return refuse(ErrorKind::usage,
                  {{.what = std::strerror(errno),
                    .where = spec_->folder.string(),
                    .hint = "the folder from which the job is started must be on every host"}});
  }
  spec_->environment = environment_on_host(Environment::of_process(), spec_->environment);
  set_current_folder(spec_->environment, spec_->folder);
  try {
    grace_ = job_.check(*spec_);
  } catch (const Error& error) {
    return refuse(error.kind(), error.problems());
  }
  HostReady ready = describe_host();
  ready.grace = grace_;
  send(FrameKind::ready, to_json(ready));
}

void HostAgent::refuse(ErrorKind kind, std::vector<Problem> problems) {
  send(FrameKind::refused, to_json(Refusal{kind, std::move(problems)}));
  code_ = exit_code(kind);
  end_when_done();
}

void HostAgent::on_start(const std::string& text) {
  if (!spec_ || process_) return;
  const StartOrder order = parse_start_order(text);
  Engine& engine = spec_->host.engine;
  const std::string origin = engine.master_addr ? engine.master_addr->origin : engine.name;
  engine.run_id = {order.run_id, engine.name};
  engine.master_addr = {order.address, origin};
  engine.master_port = {order.port, fmt::format("a free port of the {}", origin)};
  start_job();
}

// The second signal kills the workers, as in the launcher.
void HostAgent::on_signal(const std::string& text) {
  const auto signal = parse_integer(text);
  if (process_ && !code_ && signal && *signal > 0 && *signal < NSIG)
    ::kill(process_->id(), static_cast<int>(*signal));
}

void HostAgent::wait_for_own_signal() {
  signals_.async_wait([this](error_code error, int signal) {
    if (error) return;
    on_own_signal(signal);
    wait_for_own_signal();
  });
}

// Whoever ends this agent, as an engine or an administrator, means its job.
void HostAgent::on_own_signal(int signal) {
  log::debug("received {}", signal_name(signal));
  if (process_) return code_ ? void() : ask_job_to_end();
  code_ = 128 + signal;
  loop_.stop();
}

// In a child, since it waits for other nodes and for drivers.
void HostAgent::on_look() {
  if (!process_ || code_ || !job_.reports) return;
  // Until it is reaped, one that was late counts as waited for.
  reap_lookers();
  if (looker_.is_waiting()) return;
  looker_.ask([this, job = process_->id()](int to) { write_all(to, job_.reports(*spec_, job)); },
              kMeasureTimeout,
              [this](const ChildAnswer::Answer& answer) { send(FrameKind::reports, answer.text); });
}

// Leaves the job's own status to its handler.
void HostAgent::reap_lookers() const {
  siginfo_t ended = {};
  while (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0 &&
         ended.si_pid != process_->id()) {
    ::waitpid(ended.si_pid, nullptr, 0);
    ended = {};
  }
}

// In the child: the loop's descriptors are closed before anything else runs.
void HostAgent::be_job(const HostJob& job, const JobSpec& spec, int log) {
  constexpr int kLog = 3;
  if (log != kLog) ::dup2(log, kLog);
  ::syscall(SYS_close_range, kLog + 1U, ~0U, 0U);
  ::fcntl(kLog, F_SETFD, FD_CLOEXEC);
  log::send_to([](std::string_view lines) { write_all(kLog, encode(FrameKind::log, lines)); });
  int code = exit_code(ErrorKind::system);
  try {
    code = job.run(spec);
  } catch (const Error& error) {
    for (const Problem& problem : error.problems()) log::write(log::Level::error, to_string(problem));
    code = exit_code(error.kind());
  } catch (const std::exception& error) {
    log::write(log::Level::error, std::string("internal error: ") + error.what());
  }
  std::fflush(nullptr);
  ::_exit(code);
}

void HostAgent::start_job() {
  Channel out = make_pipe();
  Channel err = make_pipe();
  Channel log = make_pipe();
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const ProcessLauncher launcher = {.environment = spec_->environment,
                                    .in = nothing.get(),
                                    .out = out.workers.get(),
                                    .err = err.workers.get(),
                                    .death_signal = SIGTERM};
  process_.emplace(
      launcher.fork(loop_.get_executor(), [&]() -> int { be_job(job_, *spec_, log.workers.get()); }));
  for (auto& [channel, kind] :
       {std::pair(&out, FrameKind::out), std::pair(&err, FrameKind::err), std::pair(&log, FrameKind::log)}) {
    streams_.push_back(std::make_shared<JobStream>(stream_descriptor(loop_, channel->ours.release()), kind));
    forward(streams_.back());
  }
  process_->async_wait([this](error_code error, int) {
    if (!error) on_job_ended();
  });
}

// What the job has written is in the pipes, and is sent however slow the client is.
void HostAgent::on_job_ended() {
  code_ = shell_code(to_exit_status(process_->native_exit_code()));
  process_->detach();
  const auto streams = streams_;
  for (const auto& stream : streams) {
    for (int reads = 0; reads < kMaxLastReads; ++reads) {
      if (!read_stream(*stream)) {
        if (errno != EAGAIN) end_stream(stream);
        break;
      }
    }
  }
  if (streams_.empty()) return end_when_done();
  // A process that the job left behind, which its guardian kills, may hold the streams for a moment.
  last_output_.expires_after(kEndOfStreams);
  last_output_.async_wait([this](error_code cancelled) {
    if (!cancelled) end_when_done();
  });
}

void HostAgent::forward(const std::shared_ptr<JobStream>& stream) {
  if (queue_.size() > kMaxQueued && !lost_) {
    stalled_.push_back(stream);
    return;
  }
  stream->from.async_wait(stream_descriptor::wait_read, [this, stream](error_code error) {
    if (error || !stream->from.is_open()) return;
    if (!read_stream(*stream) && errno != EAGAIN) return end_stream(stream);
    forward(stream);
  });
}

// Passes on what it brings; the log comes as frames already. Returns false, with errno, if there is nothing;
// errno is 0 at its end.
bool HostAgent::read_stream(JobStream& stream) {
  static std::array<char, std::size_t{64} << 10U> buffer;
  ssize_t size = 0;
  do {
    size = ::read(stream.from.native_handle(), buffer.data(), buffer.size());
  } while (size < 0 && errno == EINTR);
  if (size == 0) errno = 0;
  if (size <= 0) return false;
  const std::string_view chunk(buffer.data(), static_cast<std::size_t>(size));
  if (stream.kind != FrameKind::log) {
    send(stream.kind, chunk);
  } else {
    for (const Frame& frame : log_frames_.feed(chunk)) send(stream.kind, frame.payload);
  }
  return true;
}

void HostAgent::end_stream(const std::shared_ptr<JobStream>& stream) {
  stream->from.close();
  std::erase(streams_, stream);
  if (streams_.empty() && code_) end_when_done();
}

void HostAgent::send(FrameKind kind, std::string_view payload) {
  if (lost_) return;
  queue_ += encode(kind, payload);
  write_queue();
}

void HostAgent::write_queue() {
  if (!writing_.empty() || lost_) return;
  if (queue_.empty()) {
    for (const auto& stream : std::exchange(stalled_, {})) forward(stream);
    if (done_) loop_.stop();
    return;
  }
  writing_ = std::exchange(queue_, {});
  asio::async_write(out_, asio::buffer(writing_), [this](error_code error, std::size_t) {
    writing_.clear();
    if (error) return lose_client("nobody reads its output");
    write_queue();
  });
}

// Heartbeats show each side that the other is there: a cable that is cut ends no connection.
void HostAgent::keep_alive() {
  const auto silence = spec_->silence;
  if (!paused_ && RunningClock::now() - last_heard_ > silence) return lose_client("it was silent");
  if (!done_) send(FrameKind::heartbeat);
  alive_.expires_after(std::min<std::chrono::milliseconds>(silence / 4, std::chrono::seconds(1)));
  alive_.async_wait([this](error_code error) {
    if (!error) keep_alive();
  });
}

// The exit code is the last frame.
void HostAgent::end_when_done() {
  if (std::exchange(done_, true)) return;
  for (const auto& stream : std::exchange(streams_, {})) stream->from.close();
  stalled_.clear();
  if (lost_) return loop_.stop();
  send(FrameKind::exit, fmt::to_string(*code_));
}

// Nobody takes the output of the job any more, which must not delay its end.
void HostAgent::lose_client(const std::string& reason) {
  if (std::exchange(lost_, true)) return;
  log::debug("the job ends here: {}", reason);
  in_.close();
  alive_.cancel();
  queue_.clear();
  if (!process_ || code_) return loop_.stop();
  for (const auto& stream : std::exchange(stalled_, {})) forward(stream);
  ask_job_to_end();
}

// Its workers have their grace, in which they save what they have. If it is killed, its guardian ends what it
// has started.
void HostAgent::ask_job_to_end() {
  // A second one would kill the workers. When a host stops, more than one cause comes.
  if (std::exchange(asked_to_end_, true)) return;
  ::kill(process_->id(), SIGTERM);
  kill_.expires_after(grace_ + kMarginOfJob);
  kill_.async_wait([this](error_code error) {
    if (!error && !code_) ::kill(process_->id(), SIGKILL);
  });
}

}  // namespace

int run_agent(const HostJob& job) {
  return HostAgent(job).run();
}

}  // namespace acc::launcher
