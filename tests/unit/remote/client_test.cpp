// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/client.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/remote/frames.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/shell_script.hpp"
#include "support/temporary_folder.hpp"

namespace client_test {

using acc::Environment;
using acc::launcher::encode;
using acc::launcher::FrameKind;
using acc::launcher::RemoteJob;
using acc::launcher::run_on_hosts;
using acc::test::command_that_writes;
using acc::test::error_of;

namespace {

// A host that is ready, and then ends as it is told; it is a shell script in the place of ssh.
std::string ready_host(const std::string& script) {
  const acc::launcher::HostReady ready = {
      .host_name = "n", .addresses = {"10.0.0.1"}, .port = 23456, .grace = std::chrono::seconds(60)};
  return command_that_writes(acc::launcher::greeting() + encode(FrameKind::ready, to_json(ready))) + "; " +
         script;
}

RemoteJob job_on(const std::map<std::string, std::string>& scripts,
                 std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  RemoteJob job = {
      .flag = "--hosts", .environment = Environment::of_process(), .run_id = "run", .host_timeout = limit};
  std::string cases = "case $0 in ";
  for (const auto& [name, script] : scripts) {
    job.hosts.push_back({.name = name, .origin = "--hosts"});
    cases += name + ") " + script + ";; ";
  }
  job.spec.version = "acc 1";
  job.shell.words = {"sh", "-c", cases + "esac"};
  return job;
}

/// A client in a process of its own.
class ClientProcess {
 public:
  ClientProcess(const RemoteJob& job, const std::filesystem::path& out, const std::filesystem::path& err) {
    std::fflush(nullptr);  // the child writes nothing that is still buffered here
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) return;
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
    ::_exit(run_on_hosts(job));
  }
  ~ClientProcess() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    wait();
  }
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  bool has_ended() const {
    siginfo_t ended = {};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid != 0;
  }
  int wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
};

struct Ran {
  int code = 0;
  std::string err = {};
};

/// One host that sends these frames once it is ready.
Ran run_host(const std::string& frames, const std::filesystem::path& out = "/dev/null") {
  const acc::test::TemporaryFolder folder;
  const std::filesystem::path err = folder.path() / "err";
  const int code = ClientProcess(job_on({{"a", ready_host(command_that_writes(frames))}}), out, err).wait();
  return {code, acc::read_file(err)};
}

}  // namespace

TEST_CASE("client: hosts that cannot start are named together, when all have answered", "[remote]") {
  const acc::launcher::Refusal refusal = {acc::ErrorKind::config, {{"no such file", "train.py", ""}}};
  const std::string refuses =
      command_that_writes(acc::launcher::greeting() + encode(FrameKind::refused, to_json(refusal)));
  const RemoteJob job = job_on({{"a", refuses},
                                {"b", ready_host("exec cat >/dev/null")},
                                {"c", refuses},
                                {"d", "echo 'Permission denied (publickey).' >&2; exit 255"}});
  CHECK(error_of([&] {
          run_on_hosts(job);
        }).starts_with("a, c: train.py: no such file\nd: ssh was not let in: Permission denied"));
}

TEST_CASE("client: a host that is silent is named in time", "[remote]") {
  const RemoteJob job = job_on({{"a", "exec sleep 1000"}}, std::chrono::milliseconds(100));
  CHECK(error_of([&] { run_on_hosts(job); }) == "a: no answer within 0.1 s (is it up? try: sh a true)");
}

TEST_CASE("client: a server that takes no more logins at once is asked again", "[remote]") {
  const acc::test::TemporaryFolder folder;
  const std::string closes =
      "echo 'kex_exchange_identification: Connection closed by remote host' >&2; exit 255";
  const std::string first =
      "if mkdir " + (folder.path() / "asked").string() + " 2>/dev/null; then " + closes + "; fi; ";
  ClientProcess client(job_on({{"a", first + ready_host(command_that_writes(encode(FrameKind::exit, "0")))}}),
                       "/dev/null", folder.path() / "err");
  CHECK(client.wait() == 0);
  const RemoteJob job = job_on({{"a", closes}}, std::chrono::seconds(5));
  CHECK(error_of([&] {
          run_on_hosts(job);
        }).starts_with("a: the ssh server, or a jump host, closes new connections: kex_exchange_"));
}

TEST_CASE("client: output that cannot be written is told, and makes a good exit code 1", "[remote]") {
  const std::string hi = encode(FrameKind::out, "hi\n");
  const std::string full =
      "acc: warning: standard output cannot be written: No space left on device; acc keeps trying\n"
      "acc: warning: 3 bytes of output are lost: No space left on device";
  const Ran good = run_host(hi + encode(FrameKind::exit, "0"), "/dev/full");
  CHECK(good.code == 1);
  CHECK(good.err == full + "; the exit code is 1 for that\n");
  const Ran bad = run_host(hi + encode(FrameKind::exit, "7"), "/dev/full");
  CHECK(bad.code == 7);
  CHECK(bad.err == full + "\n");
}

TEST_CASE("client: without a reader it ends as a writer to a closed pipe does", "[remote]") {
  const acc::test::TemporaryFolder folder;
  const std::filesystem::path pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::filesystem::path gate = folder.path() / "go";
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const std::string script =
      ready_host("cat " + gate.string() + "; " +
                 command_that_writes(encode(FrameKind::out, "hi\n") + encode(FrameKind::exit, "143")));
  ClientProcess client(job_on({{"a", script}}), pipe, folder.path() / "err");
  acc::Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_CLOEXEC));
  acc::Descriptor go(::open(gate.c_str(), O_WRONLY | O_CLOEXEC));  // the job runs
  reader.reset();
  go.reset();
  CHECK(client.wait() == 128 + SIGPIPE);
}

TEST_CASE("client: what is no exit code counts as a lost connection", "[remote]") {
  const Ran ran = run_host(encode(FrameKind::exit, "256"));
  CHECK(ran.code == 75);
  CHECK(ran.err == "acc: a: the connection is lost: '256' is not an exit code\n");
}

TEST_CASE("client: lines of acc on a host steer no terminal", "[remote]") {
  const Ran ran = run_host(encode(FrameKind::log, "acc: \x1b[2Jb\xff\n") + encode(FrameKind::exit, "0"));
  CHECK(ran.code == 0);
  CHECK(ran.err == "acc: a: \\x1b[2Jb\\xff\n");
}

TEST_CASE("client: a second signal ends the job while nobody reads its output", "[remote]") {
  const acc::test::TemporaryFolder folder;
  const std::filesystem::path pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const acc::Descriptor reader(::open(pipe.c_str(), O_RDWR | O_CLOEXEC));
  // More than the pipe and the client hold.
  std::string frames;
  for (int i = 0; i < 64; ++i) frames += encode(FrameKind::out, std::string(std::size_t{64} << 10U, 'x'));
  std::ofstream(folder.path() / "frames", std::ios::binary) << frames << encode(FrameKind::exit, "143");
  const std::string script = ready_host("cat " + (folder.path() / "frames").string());
  ClientProcess client(job_on({{"a", script}}), pipe, folder.path() / "err");
  std::array<char, 1> first = {};
  REQUIRE(::read(reader.get(), first.data(), first.size()) == 1);  // the job runs
  client.signal(SIGTERM);
  // One that comes at once does not count.
  while (!client.has_ended()) {
    client.signal(SIGTERM);
    ::usleep(20'000);
  }
  CHECK(client.wait() == 143);
}

TEST_CASE("client: a signal that comes twice at once is one, and all output is kept", "[remote]") {
  const acc::test::TemporaryFolder folder;
  const std::filesystem::path out = folder.path() / "out";
  const std::filesystem::path sent = folder.path() / "sent";
  const std::filesystem::path runs = folder.path() / "runs";
  const std::filesystem::path go = folder.path() / "go";
  std::ofstream(sent).flush();
  for (const auto& gate : {runs, go}) REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const std::string script = ready_host(
      "exec 3<&0; cat <&3 >" + sent.string() + " & : >" + runs.string() + "; cat " + go.string() + "; " +
      command_that_writes(encode(FrameKind::out, "saved\n") + encode(FrameKind::exit, "143")));
  ClientProcess client(job_on({{"a", script}}), out, folder.path() / "err");
  acc::Descriptor(::open(runs.c_str(), O_RDONLY | O_CLOEXEC)).reset();  // the host reads
  const auto wait_for = [&](const std::string& text, const std::string& other) {
    const auto has = [&](const std::string& part) {
      return acc::read_file(sent).find(part) != std::string::npos;
    };
    while (!has(text) && !has(other) && !client.has_ended()) ::usleep(1000);
  };
  wait_for(R"("run_id":"run")", R"("run_id":"run")");
  client.signal(SIGSTOP);  // both have arrived before it looks
  client.signal(SIGTERM);
  client.signal(SIGINT);
  client.signal(SIGCONT);
  // It may see either first.
  wait_for(encode(FrameKind::signal, std::to_string(SIGTERM)),
           encode(FrameKind::signal, std::to_string(SIGINT)));
  acc::Descriptor(::open(go.c_str(), O_WRONLY | O_CLOEXEC)).reset();
  CHECK(client.wait() == 143);
  CHECK(acc::read_file(out) == "saved\n");
}

TEST_CASE("client: a signal that is named to end the job ends it before it has started, too", "[remote]") {
  const acc::test::TemporaryFolder folder;
  const std::filesystem::path gate = folder.path() / "connecting";
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  RemoteJob job = job_on({{"a", ": >" + gate.string() + "; exec cat >/dev/null"}});
  job.handled_signals = {SIGXCPU, SIGUSR1};
  ClientProcess client(job, "/dev/null", folder.path() / "err");
  const acc::Descriptor connecting(::open(gate.c_str(), O_RDONLY | O_CLOEXEC));
  client.signal(SIGUSR1);
  client.signal(SIGXCPU);
  CHECK(client.wait() == 128 + SIGXCPU);
}

}  // namespace client_test
