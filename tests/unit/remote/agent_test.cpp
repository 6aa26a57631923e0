// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/agent.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/log.hpp"
#include "acc/remote/frames.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace agent_test {

using acc::Descriptor;
using acc::Environment;
using acc::Error;
using acc::launcher::encode;
using acc::launcher::Frame;
using acc::launcher::FrameKind;
using acc::launcher::FrameReader;
using acc::launcher::HostJob;
using acc::launcher::JobSpec;
using acc::launcher::parse_host_ready;
using acc::launcher::parse_refusal;

namespace {

/// An agent in a child process, whose input and output are a socket to this one.
class AgentProcess {
 public:
  explicit AgentProcess(const HostJob& job) {
    int ends[2] = {-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    ours_ = Descriptor(ends[0]);
    std::fflush(nullptr);  // The child writes nothing that is still buffered here.
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) {
      ::close(ends[1]);
      return;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::_exit(acc::launcher::run_agent(job));
  }
  ~AgentProcess() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;

  void send(FrameKind kind, std::string_view payload = {}) {
    CHECK(acc::write_all(ours_.get(), encode(kind, payload)));
  }
  void send_text(std::string_view text) { CHECK(acc::write_all(ours_.get(), text)); }
  void close_input() { ::shutdown(ours_.get(), SHUT_WR); }
  void signal(int number) const { ::kill(pid_, number); }

  /// The next frame of this kind; others are skipped. An empty payload with kind heartbeat: the stream ended.
  Frame next(FrameKind kind) {
    for (;;) {
      while (!frames_.empty()) {
        Frame frame = frames_.front();
        frames_.erase(frames_.begin());
        if (frame.kind == kind) return frame;
      }
      std::array<char, 4096> buffer = {};
      const ssize_t size = ::read(ours_.get(), buffer.data(), buffer.size());
      if (size <= 0) return {};
      frames_ = reader_.feed({buffer.data(), static_cast<std::size_t>(size)});
    }
  }

  int exit_code() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  Descriptor ours_ = {};
  pid_t pid_ = 0;
  FrameReader reader_{true};
  std::vector<Frame> frames_ = {};
};

JobSpec spec_of(const std::string& version = "acc 1") {
  JobSpec spec = {.version = version, .folder = "/", .environment = {{"NCCL_DEBUG", "x"}}};
  spec.host.engine.name = "--hosts";
  spec.host.engine.rank = acc::EngineValue<int>{0, "a"};
  spec.host.engine.size = acc::EngineValue<int>{2, "a,b"};
  spec.host.engine.master_addr = acc::EngineValue<std::string>{"a", "first of --hosts"};
  return spec;
}

const std::string kStart =
    to_json(acc::launcher::StartOrder{.address = "10.0.0.7", .port = 23456, .run_id = "run"});

HostJob job_of(std::function<int(const JobSpec&)> run) {
  return {.version = "acc 1",
          .check = [](const JobSpec&) { return std::chrono::seconds(0); },
          .run = std::move(run)};
}

/// Runs until it is ended.
int wait_for_ever(const JobSpec&) {
  acc::write_all(STDOUT_FILENO, "runs");
  for (;;) ::pause();
}

/// Runs until SIGTERM, which it handles as a worker does that saves what it has: it exits with 7.
int wait_for_request(const JobSpec& spec) {
  ::signal(SIGTERM, [](int) { ::_exit(7); });
  return wait_for_ever(spec);
}

void begin(AgentProcess& agent, const JobSpec& spec = spec_of()) {
  agent.send(FrameKind::spec, to_json(spec));
  CHECK(parse_host_ready(agent.next(FrameKind::ready).payload).port >= 20000);
  agent.send(FrameKind::start, kStart);
}

}  // namespace

TEST_CASE("agent: shows the ranks of its job to who looks, and has its exit code still", "[remote]") {
  HostJob job = job_of(wait_for_ever);
  job.reports = [](const JobSpec&, pid_t process) { return ::kill(process, 0) == 0 ? "[]" : "no job"; };
  AgentProcess agent(job);
  agent.send(FrameKind::look);  // nothing runs
  begin(agent);
  CHECK(agent.next(FrameKind::out).payload == "runs");
  for (int i = 0; i < 3; ++i) {
    agent.send(FrameKind::look);
    CHECK(agent.next(FrameKind::reports).payload == "[]");
  }
  agent.send(FrameKind::signal, std::to_string(SIGTERM));
  CHECK(agent.next(FrameKind::exit).payload == "143");
}

TEST_CASE("agent: runs a job with its rank, and passes on output and exit code", "[remote]") {
  AgentProcess agent(job_of([](const JobSpec& spec) {
    const acc::Engine& engine = spec.host.engine;
    const std::string variable = acc::Environment::of_process().get("NCCL_DEBUG");
    acc::write_all(STDOUT_FILENO, engine.master_addr->value + " " + engine.run_id->value + " " + variable);
    acc::write_all(STDERR_FILENO, "error");
    acc::log::write(acc::log::Level::info, "a line of acc");
    return engine.master_port->value == 23456 ? 5 : 6;
  }));
  begin(agent);
  CHECK(agent.next(FrameKind::out).payload == "10.0.0.7 run x");
  CHECK(agent.exit_code() == 5);
}

TEST_CASE("agent: PWD names the folder of the job, as it is or through a link", "[remote]") {
  const acc::test::TemporaryFolder folder;
  const std::filesystem::path link = folder.path() / "link";
  std::filesystem::create_directory_symlink("/", link);
  for (const std::string& given : {std::string("/usr"), std::string("."), link.string()}) {
    JobSpec spec = spec_of();
    spec.environment.set("PWD", given);
    AgentProcess agent(job_of([](const JobSpec&) {
      acc::write_all(STDOUT_FILENO, Environment::of_process().get("PWD"));
      return 0;
    }));
    begin(agent, spec);
    CHECK(agent.next(FrameKind::out).payload == (given == link ? given : "/"));
  }
}

TEST_CASE("agent: tells how long its workers have to end", "[remote]") {
  HostJob job = job_of([](const JobSpec&) { return 0; });
  job.check = [](const JobSpec&) { return std::chrono::seconds(60); };
  AgentProcess agent(job);
  agent.send(FrameKind::spec, to_json(spec_of()));
  CHECK(parse_host_ready(agent.next(FrameKind::ready).payload).grace == std::chrono::seconds(60));
}

TEST_CASE("agent: keeps both streams of the workers and acc's own lines apart", "[remote]") {
  AgentProcess agent(job_of([](const JobSpec&) {
    acc::write_all(STDERR_FILENO, "error");
    acc::log::write(acc::log::Level::warn, "a line of acc");
    return 0;
  }));
  begin(agent);
  std::map<FrameKind, std::string> got;
  for (Frame frame = agent.next(FrameKind::err); frame.kind == FrameKind::err;
       frame = agent.next(FrameKind::err))
    got[frame.kind] += frame.payload;
  CHECK(got[FrameKind::err] == "error");
  AgentProcess other(job_of([](const JobSpec&) {
    acc::log::write(acc::log::Level::warn, "a line of acc");
    return 0;
  }));
  begin(other);
  CHECK(other.next(FrameKind::log).payload == "acc: warning: a line of acc\n");
  CHECK(other.next(FrameKind::exit).payload == "0");
}

TEST_CASE("agent: an error of the job is told by acc, and is its exit code", "[remote]") {
  AgentProcess agent(job_of([](const JobSpec&) -> int {
    throw Error({.kind = acc::ErrorKind::rendezvous, .what = "nobody came"});
  }));
  begin(agent);
  CHECK(agent.next(FrameKind::log).payload == "acc: nobody came\n");
  CHECK(agent.next(FrameKind::exit).payload == "75");
}

TEST_CASE("agent: refuses what cannot start, and says why", "[remote]") {
  HostJob job = job_of([](const JobSpec&) { return 0; });
  job.check = [](const JobSpec&) -> std::chrono::milliseconds {
    throw Error({.what = "no such file", .where = "train.py"});
  };
  AgentProcess agent(job);
  agent.send(FrameKind::spec, to_json(spec_of()));
  CHECK(parse_refusal(agent.next(FrameKind::refused).payload).problems ==
        std::vector<acc::Problem>{{.what = "no such file", .where = "train.py"}});
  CHECK(agent.exit_code() == 2);

  AgentProcess other(job_of([](const JobSpec&) { return 0; }));
  other.send(FrameKind::spec, to_json(spec_of("acc 2")));
  CHECK(parse_refusal(other.next(FrameKind::refused).payload).problems.front().what ==
        "has acc 1, and the host that starts the job acc 2");

  AgentProcess elsewhere(job_of([](const JobSpec&) { return 0; }));
  JobSpec spec = spec_of();
  spec.folder = "/no/such/folder";
  elsewhere.send(FrameKind::spec, to_json(spec));
  CHECK(parse_refusal(elsewhere.next(FrameKind::refused).payload).problems.front().where ==
        "/no/such/folder");
}

TEST_CASE("agent: bytes of another program end it", "[remote]") {
  AgentProcess agent(job_of([](const JobSpec&) { return 0; }));
  agent.send_text("GET / HTTP/1.0\r\n\r\n");
  CHECK(agent.next(FrameKind::refused).kind == FrameKind::refused);
  CHECK(agent.exit_code() == 1);
}

TEST_CASE("agent: passes on all that the job has written to a client that reads slowly", "[remote]") {
  // The job writes until nothing is taken from it any more, and ends.
  const acc::test::TemporaryFolder folder;
  const std::filesystem::path ended = folder.path() / "ended";
  REQUIRE(::mkfifo(ended.c_str(), 0600) == 0);
  AgentProcess agent(job_of([&ended](const JobSpec&) {
    ::fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
    const std::string line(999, 'x');
    std::size_t written = 0;
    pollfd taken = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
    while (::poll(&taken, 1, 500) == 1) {
      const ssize_t size = ::write(STDOUT_FILENO, line.data(), line.size());
      if (size > 0) written += static_cast<std::size_t>(size);
    }
    std::ofstream(ended) << written;
    return 0;
  }));
  begin(agent);
  std::size_t written = 0;
  std::ifstream(ended) >> written;
  ::usleep(1'200'000);  // a slow client
  std::size_t read = 0;
  for (Frame frame = agent.next(FrameKind::out); frame.kind == FrameKind::out;
       frame = agent.next(FrameKind::out))
    read += frame.payload.size();
  CHECK(read == written);
  CHECK(agent.exit_code() == 0);
}

TEST_CASE("agent: passes signals on", "[remote]") {
  AgentProcess agent(job_of(wait_for_ever));
  begin(agent);
  CHECK(agent.next(FrameKind::out).payload == "runs");
  agent.send(FrameKind::signal, "15");
  CHECK(agent.next(FrameKind::exit).payload == "143");
}

TEST_CASE("agent: a job whose client is lost is asked to end, and may save what it has", "[remote]") {
  AgentProcess agent(job_of(wait_for_request));
  begin(agent);
  CHECK(agent.next(FrameKind::out).payload == "runs");
  SECTION("its input ends") {
    agent.close_input();
  }
  SECTION("its input is of another program") {
    agent.send_text("GET / HTTP/1.1\r\n\r\n");
  }
  CHECK(agent.exit_code() == 7);
}

TEST_CASE("agent: output that nobody takes any more delays no job that is asked to end", "[remote]") {
  AgentProcess agent(job_of([](const JobSpec&) {
    ::signal(SIGTERM, [](int) {
      const std::string much(std::size_t{4} << 20U, 'x');
      ::_exit(acc::write_all(STDOUT_FILENO, much) ? 7 : 8);
    });
    const std::string much(std::size_t{1} << 20U, 'x');
    while (acc::write_all(STDOUT_FILENO, much)) {
    }
    return 9;
  }));
  begin(agent);
  agent.next(FrameKind::out);
  agent.close_input();
  CHECK(agent.exit_code() == 7);
}

TEST_CASE("agent: a signal to it asks the job to end, and the client hears how it did", "[remote]") {
  const int signal = GENERATE(SIGTERM, SIGHUP, SIGINT);
  AgentProcess agent(job_of(wait_for_request));
  begin(agent);
  CHECK(agent.next(FrameKind::out).payload == "runs");
  agent.signal(signal);
  CHECK(agent.next(FrameKind::exit).payload == "7");
}

TEST_CASE("agent: two causes ask the job to end once: twice would kill its workers", "[remote]") {
  const acc::test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "saved";
  AgentProcess agent(job_of([&file](const JobSpec&) {
    ::signal(SIGTERM, [](int) {
      ::signal(SIGTERM, [](int) { ::_exit(8); });
      acc::write_all(STDOUT_FILENO, "saves");
    });
    acc::write_all(STDOUT_FILENO, "runs");
    while (!std::filesystem::exists(file)) ::sched_yield();
    return 7;
  }));
  begin(agent);
  CHECK(agent.next(FrameKind::out).payload == "runs");
  agent.signal(SIGTERM);
  CHECK(agent.next(FrameKind::out).payload == "saves");
  agent.close_input();
  std::ofstream(file).put('x');
  CHECK(agent.exit_code() == 7);
}

TEST_CASE("agent: a signal before the job has begun ends it", "[remote]") {
  AgentProcess agent(job_of(wait_for_ever));
  agent.send(FrameKind::spec, to_json(spec_of()));
  agent.next(FrameKind::ready);
  agent.signal(SIGTERM);
  CHECK(agent.exit_code() == 128 + SIGTERM);
}

TEST_CASE("agent: a job whose agent is killed is asked to end, too", "[remote]") {
  const acc::test::TemporaryFolder folder;
  static std::string path;
  path = folder.path() / "saved";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const Descriptor saved(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  AgentProcess agent(job_of([](const JobSpec& spec) {
    ::signal(SIGTERM, [](int) { ::_exit(acc::write_all(::open(path.c_str(), O_WRONLY), "x") ? 7 : 8); });
    return wait_for_ever(spec);
  }));
  begin(agent);
  CHECK(agent.next(FrameKind::out).payload == "runs");
  agent.signal(SIGKILL);
  pollfd readable = {.fd = saved.get(), .events = POLLIN, .revents = 0};
  CHECK(::poll(&readable, 1, 60'000) == 1);
}

TEST_CASE("agent: a silent client is lost, unless it said that it would be silent", "[remote]") {
  JobSpec spec = spec_of();
  spec.silence = std::chrono::milliseconds(200);
  AgentProcess agent(job_of(wait_for_request));
  begin(agent, spec);
  CHECK(agent.exit_code() == 7);

  AgentProcess paused(job_of([](const JobSpec&) {
    ::usleep(600'000);  // three times the allowed silence
    return 0;
  }));
  paused.send(FrameKind::spec, to_json(spec));
  paused.next(FrameKind::ready);
  paused.send_text(encode(FrameKind::start, kStart) + encode(FrameKind::pause));
  CHECK(paused.exit_code() == 0);
}

}  // namespace agent_test
