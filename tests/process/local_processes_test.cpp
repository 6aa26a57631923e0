// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/local_processes.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "acc/base/subprocess/command.hpp"
#include "acc/launch/relay.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/launched.hpp"

namespace local_processes_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
using namespace std::chrono_literals;

namespace {

constexpr rlimit kFiles = {.rlim_cur = 512, .rlim_max = 1024};

ExitStatus run_to_end(const std::vector<std::string>& actions) {
  boost::asio::io_context loop;
  WorkerStart worker = {.program = program("acc-test-stub"), .arguments = {"any name"}};
  worker.arguments.insert(worker.arguments.end(), actions.begin(), actions.end());
  Process process = spawn(loop, worker, {}, {kFiles});
  bool ended = false;
  process.async_wait([&](boost::system::error_code error, int) { ended = !error; });
  loop.run();
  REQUIRE(ended);
  return to_exit_status(process.native_exit_code());
}

struct Local {
  Local() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

  void start(std::vector<std::string> actions) {
    actions.insert(actions.begin(), "stub");
    processes.start({.program = program("acc-test-stub"), .arguments = std::move(actions)});
  }
  template <typename Kind>
  Kind next() {
    const AgentEvent event = processes.next(processes.now() + std::chrono::milliseconds(kTimeoutMs));
    REQUIRE(std::holds_alternative<Kind>(event));
    return std::get<Kind>(event);
  }

  Channel pipe = make_pipe();
  Channel supervisor = make_pipe();
  boost::asio::io_context loop = {};
  Output output{loop, {}, 1, {pipe.workers.get(), pipe.workers.get()}};
  LocalProcesses processes{loop, output, {.supervisor = supervisor.ours.get()}};
};

}  // namespace

TEST_CASE("spawn: exit codes differ from signals", "[process]") {
  CHECK(run_to_end({"exit", "9"}) == ExitStatus(Exited{9}));
  CHECK(run_to_end({"raise", "9"}) == ExitStatus(Signaled{9}));
}

TEST_CASE("spawn: a program that cannot be executed leaves nothing", "[process]") {
  boost::asio::io_context loop;
  const TemporaryFolder folder;
  const std::string missing = (folder.path() / "none").string();
  const auto start = [&](const std::string& file) {
    return error_of([&] { spawn(loop, {.program = file, .arguments = {file}}, {}, {kFiles}); });
  };
  CHECK(start(missing) == missing + ": cannot be started: No such file or directory");
  const auto text = folder.write("script", "echo no first line\n");
  std::filesystem::permissions(text, std::filesystem::perms::owner_all);
  CHECK(start(text.string()).find("Exec format error (a script needs") != std::string::npos);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("spawn: destroying a worker kills it", "[process]") {
  boost::asio::io_context loop;
  ReportFifo reports;
  std::optional<Process> process = spawn(
      loop,
      {.program = program("acc-test-stub"), .arguments = {"stub", "tell", reports.path(), "here", "pause"}},
      {}, {kFiles});
  const std::vector<Descriptor> watched = reports.next_processes(1);
  process.reset();
  CHECK(all_gone(watched));
}

TEST_CASE("local_processes: the end of a worker is one event", "[process]") {
  Local local;
  local.start({"exit", "5"});
  CHECK(local.next<WorkerEnded>().status == ExitStatus(Exited{5}));
  CHECK(std::holds_alternative<TimeUp>(local.processes.next(local.processes.now())));
  CHECK_FALSE(local.processes.signal_orphans(SIGTERM));
}

TEST_CASE("local_processes: a signal reaches the whole group of a worker", "[process]") {
  Local local;
  ReportFifo reports;
  local.start({"child", reports.path(), "pause"});
  const std::vector<Descriptor> child = reports.next_processes(1);
  local.processes.signal(0, SIGTERM);
  CHECK(local.next<WorkerEnded>().status == ExitStatus(Signaled{SIGTERM}));
  CHECK(all_gone(child));
}

TEST_CASE("local_processes: a child that asks what may block is no orphan, and not waited for", "[process]") {
  Local local;
  std::array<int, 2> ends = {};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const Descriptor answer(ends[0]);
  const pid_t child = run_in_child(Descriptor(ends[1]), [](int) { ::pause(); });
  REQUIRE(child > 0);
  CHECK(is_asking_child(child));
  CHECK_FALSE(local.processes.signal_orphans(SIGKILL));
  CHECK(::kill(child, SIGKILL) == 0);
}

TEST_CASE("local_processes: orphans are found, signalled and awaited", "[process]") {
  Local local;
  ReportFifo reports;
  local.start({"daemon", reports.path(), "child", reports.path()});
  const std::vector<Descriptor> orphans = reports.next_processes(2);
  local.next<WorkerEnded>();
  REQUIRE(local.processes.signal_orphans(SIGTERM));
  local.next<OrphansGone>();
  CHECK(all_gone(orphans));
  CHECK_FALSE(local.processes.signal_orphans(SIGKILL));
}

TEST_CASE("local_processes: orphans that end while workers run are reaped", "[process]") {
  Local local;
  ReportFifo reports;
  local.start({"daemon", reports.path(), "pause"});
  const pid_t orphan = reports.next_process();
  const std::vector<Descriptor> watched = [&] {
    std::vector<Descriptor> descriptors;
    descriptors.push_back(watch(orphan));
    return descriptors;
  }();
  ::kill(orphan, SIGKILL);
  REQUIRE(all_gone(watched));
  // Its SIGCHLD is read before this signal: the number is higher.
  ::kill(::getpid(), SIGWINCH);
  CHECK(local.next<SignalArrived>().signal == SIGWINCH);
  CHECK(::kill(orphan, 0) == -1);
  local.processes.signal(0, SIGKILL);
  local.next<WorkerEnded>();
}

TEST_CASE("local_processes: the later one of SIGTSTP and SIGCONT counts, as for any process", "[process]") {
  Local local;
  ::raise(SIGTSTP);
  ::raise(SIGCONT);
  CHECK(local.next<SignalArrived>().signal == SIGCONT);
  CHECK(std::holds_alternative<TimeUp>(local.processes.next(local.processes.now())));
  ::raise(SIGCONT);
  ::raise(SIGTSTP);
  CHECK(local.next<SignalArrived>().signal == SIGTSTP);
  CHECK(std::holds_alternative<TimeUp>(local.processes.next(local.processes.now())));
}

TEST_CASE("local_processes: the loss of the supervisor is an event", "[process]") {
  Local local;
  local.supervisor.workers.reset();
  local.next<SupervisorLost>();
}

TEST_CASE("local_processes: nothing happens until the deadline", "[process]") {
  Local local;
  const auto deadline = local.processes.now() + 5ms;
  CHECK(std::holds_alternative<TimeUp>(local.processes.next(deadline)));
  CHECK(local.processes.now() >= deadline);
}

}  // namespace local_processes_test
